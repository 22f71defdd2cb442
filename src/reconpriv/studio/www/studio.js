// What the server cannot do: moving between steps, twin inputs, the theme, the clipboard.
"use strict";

(() => {
  const all = (selector) => Array.from(document.querySelectorAll(selector));

  // Light or dark: the system's choice until the switch is pressed.
  const dark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const showTheme = () => {
    const button = document.querySelector("[data-theme-switch]");
    if (!button) return;
    button.setAttribute("aria-pressed", String(dark()));
    button.textContent = dark() ? "Light theme" : "Dark theme";
  };
  const stored = localStorage.getItem("reconpriv-theme");
  if (stored) document.documentElement.dataset.theme = stored;

  const showStep = ({ step, open }) => {
    const sections = all("[data-step]");
    const changed = sections.some((s) => !s.hidden && Number(s.dataset.step) !== step);
    sections.forEach((s) => { s.hidden = Number(s.dataset.step) !== step; });
    all(".steps .step").forEach((button, i) => {
      button.disabled = !open.includes(i + 1);
      if (i + 1 === step) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
    if (changed) {
      window.scrollTo(0, 0);
      document.getElementById(`title_${step}`).focus({ preventScroll: true });
    }
    // The browser's own way back leads to the step before, not out of the studio.
    if (!history.state) history.replaceState({ step }, "");
    else if (history.state.step !== step) history.pushState({ step }, "");
  };
  window.addEventListener("popstate", ({ state }) => {
    if (state && state.step) Shiny.setInputValue("visit", state.step, { priority: "event" });
  });

  // What the page says is about the controls as they were: it is greyed as soon as one is touched,
  // until the server has seen as many changes.
  let edits = 0;
  const greyOld = () => all("[data-edit]").forEach((place) => {
    if (Number(place.dataset.edit) < edits) place.classList.add("stale");
  });
  const edited = () => {
    edits += 1;
    Shiny.setInputValue("edits", edits);
    greyOld();
  };
  // Again once all is drawn: what stands above a place may have grown.
  const look = (id) => {
    const show = () => setTimeout(() => {
      // An output has no place of its own (display: contents).
      const place = document.querySelector(`#${id} > *`);
      if (place) place.scrollIntoView({ block: "nearest" });
    }, 50);
    show();
    $(document).one("shiny:idle", show);
  };
  // Where the fault is: the note may have been there before the click.
  const blame = (_) => {
    const box = all("section:not([hidden]) [aria-invalid=true]").pop();
    all(".footer .notice").forEach((note) => {
      note.classList.remove("again");
      requestAnimationFrame(() => note.classList.add("again"));
    });
    if (!box) return;
    const closed = box.closest("details:not([open])");
    if (closed) closed.open = true;
    box.focus({ preventScroll: true });
    box.scrollIntoView({ block: "center" });
  };

  // A dial is a slider and a number with one value. Values go out at most every 40 ms while one is
  // dragged; "still" says that it has come to rest, which is when the slower audit runs.
  const pending = {};
  let timer = null;
  let resting = null;
  let stills = 0;
  const flush = () => {
    timer = Object.keys(pending).length ? setTimeout(flush, 40) : null;
    for (const [id, value] of Object.entries(pending)) {
      Shiny.setInputValue(id, value);
      delete pending[id];
    }
    Shiny.setInputValue("edits", edits);
  };
  const moved = () => {
    clearTimeout(resting);
    resting = setTimeout(() => Shiny.setInputValue("still", ++stills), 200);
  };
  const turn = (id, value) => {
    pending[id] = value;
    edits += 1;
    greyOld();
    if (timer === null) {
      flush();
    }
    moved();
  };
  // A dial, a menu, a box, or a group of boxes, of which those listed are to be ticked.
  const setControl = (id, value) => {
    const twins = all(`[data-dial="${id}"]`);
    if (twins.length) {
      twins.forEach((input) => { input.value = value; });
      turn(id, value);
      return;
    }
    const control = document.getElementById(id);
    if (!control) return;
    if (Array.isArray(value)) {
      control.querySelectorAll("input").forEach((box) => { box.checked = value.includes(box.value); });
    } else if (control.type === "checkbox") control.checked = value;
    else control.value = value;
    control.dispatchEvent(new CustomEvent("change", { bubbles: true, detail: "page" }));
  };

  // One column is sensitive, and one is the person's number. A column that loses such a role goes
  // back to the one it had before, or is left out if it had none, and the page says so.
  const single = { sensitive: "sensitive", person: "the person’s number" };
  const roleBefore = (select) => {
    const first = Array.from(select.options).find((option) => option.defaultSelected);
    const before = select.dataset.before || (first ? first.value : "drop");
    return before in single ? "drop" : before;
  };
  const saidOf = (select) => select.parentElement.querySelector(".role-said");
  const giveRole = (select, byPage) => {
    if (byPage) {
      select.dataset.before = select.value;
      return;
    }
    all(".role-said").forEach((place) => { place.textContent = ""; });
    if (!(select.value in single)) {
      select.dataset.before = select.value;
      return;
    }
    const other = all("select.role").find((one) => one !== select && one.value === select.value);
    if (!other) return;
    other.value = roleBefore(other);
    other.dispatchEvent(new Event("change", { bubbles: true }));
    const now = other.value === "public" ? "public again, and published as it is" : "left out";
    saidOf(select).textContent =
      `${saidOf(other).dataset.column} is no longer ${single[select.value]}: it is ${now}.`;
  };

  // Columns that tell the sensitive one, with the reason: they are left out if they were public.
  const leaveOut = (reasons) => {
    Object.entries(reasons).forEach(([id, words]) => {
      const select = document.getElementById(id);
      if (!select || select.value !== "public") return;
      setControl(id, "drop");
      saidOf(select).textContent = words;
    });
  };

  // A number box that is empty, or holds what is no number, has no value: none is kept in its place.
  const numberIn = (box) => (box.value === "" ? null : Number(box.value));
  const showFault = (box, id, words) => {
    box.setAttribute("aria-invalid", String(words !== ""));
    document.getElementById(`${id}_fault`).textContent = words;
  };

  document.addEventListener("input", (event) => {
    const { dial } = event.target.dataset;
    if (event.target.matches(".wish input")) {
      const bad = event.target.validity.badInput;
      showFault(event.target, event.target.id, bad ? "Enter a number, or nothing for any." : "");
    }
    if (!dial) return;
    const value = numberIn(event.target);
    all(`[data-dial="${dial}"]`).forEach((twin) => {
      if (twin !== event.target && value !== null) twin.value = value;
    });
    turn(dial, value);
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("select.role")) {
      event.target.dataset.role = event.target.value;
      giveRole(event.target, event.detail === "page");
    }
    if (event.target.closest(".dials, .targets")) {
      if (!event.target.dataset.dial) edited();
      moved();
    }
  });

  // Roles of many columns: those whose name holds what is typed are shown, and can be set at once.
  const shownRoles = () => all("tr:not([hidden]) select.role");
  const findColumns = () => {
    const wanted = (document.getElementById("find_column") || { value: "" }).value.toLowerCase();
    all("tr[data-column], tr:has(select.role)").forEach((row) => {
      row.hidden = !row.querySelector("strong").textContent.toLowerCase().includes(wanted);
    });
    const place = document.getElementById("found_columns");
    if (place) place.textContent = `${shownRoles().length} shown`;
  };
  document.addEventListener("input", (event) => {
    if (event.target.id === "find_column") findColumns();
  });
  // One that is sensitive, or the person's number, was chosen by itself and stays.
  const giveAll = (role) => {
    const plain = shownRoles().filter((select) => !(select.value in single));
    plain.forEach((select) => {
      select.value = role;
      select.dispatchEvent(new CustomEvent("change", { bubbles: true, detail: "page" }));
    });
    const stay = shownRoles().filter((select) => select.value in single);
    const names = stay.map((select) => `${saidOf(select).dataset.column} stays ${single[select.value]}`);
    document.getElementById("found_columns").textContent = [`${plain.length} set`, ...names].join("; ");
  };
  // The values of a column, to be written behind each of which group it is in.
  const listValues = (button) => {
    const area = document.getElementById(button.dataset.values);
    const lines = JSON.parse(button.dataset.list).map((value) =>
      `${/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value},`);
    area.value = [area.value.trimEnd(), ...lines].filter(Boolean).join("\n");
    area.rows = Math.min(lines.length + 1, 14);
    area.dispatchEvent(new Event("change", { bubbles: true }));
    area.focus();
  };

  document.addEventListener("click", async (event) => {
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      await navigator.clipboard.writeText(document.getElementById(copy.dataset.copy).innerText);
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    }
    if (event.target.closest("[data-reload]")) location.reload();
    const bulk = event.target.closest("[data-give]");
    if (bulk) giveAll(bulk.dataset.give);
    const values = event.target.closest("[data-values]");
    if (values) listValues(values);
    if (event.target.closest("[data-theme-switch]")) {
      const next = dark() ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      localStorage.setItem("reconpriv-theme", next);
      showTheme();
    }
  });

  document.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const form = event.target.closest && event.target.closest("[data-enter]");
    if (event.key === "Enter" && form && event.target.matches("input")) {
      event.preventDefault();
      // The text reaches the server with its change event, which must come first.
      event.target.dispatchEvent(new Event("change", { bubbles: true }));
      setTimeout(() => document.getElementById(form.dataset.enter).click(), 0);
    }
  });

  const ready = () => {
    showTheme();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
    all(".dials").forEach((dials) => {
      const measure = () => dials.style.setProperty("--tall", `${dials.offsetHeight}px`);
      new ResizeObserver(measure).observe(dials);
    });
    document.documentElement.lang = "en";
    $(document).on("shiny:connected", () => {
      Shiny.addCustomMessageHandler("studio-step", showStep);
      Shiny.addCustomMessageHandler("studio-progress", ({ stage, done }) => {
        const bar = document.getElementById("progress");
        if (!bar) return;
        bar.value = done;
        document.getElementById("progress_label").textContent = stage;
      });
      Shiny.addCustomMessageHandler("studio-controls", (values) => {
        Object.entries(values).forEach(([id, value]) => setControl(id, value));
      });
      Shiny.addCustomMessageHandler("studio-leave-out", leaveOut);
      Shiny.addCustomMessageHandler("studio-say", ({ id, words }) => {
        const place = document.getElementById(id);
        if (place) place.textContent = words;
      });
      Shiny.addCustomMessageHandler("studio-look", ({ id }) => look(id));
      Shiny.addCustomMessageHandler("studio-blame", blame);
      Shiny.addCustomMessageHandler("studio-reload", (_) => location.reload());
      // A file that was refused was not taken, though it has arrived.
      Shiny.addCustomMessageHandler("studio-upload", ({ refused }) => {
        const bar = document.querySelector("#upload_progress .progress-bar");
        if (!bar) return;
        bar.classList.toggle("refused", refused);
        if (refused) bar.textContent = "Not taken";
      });
      Shiny.addCustomMessageHandler("studio-faults", (faults) => {
        Object.entries(faults).forEach(([id, words]) => {
          showFault(document.getElementById(`${id}_number`), id, words);
        });
      });
      all("input[type=number][data-dial]").forEach((input) => {
        Shiny.setInputValue(input.dataset.dial, numberIn(input));
      });
      Shiny.setInputValue("edits", edits);
      new MutationObserver(greyOld).observe(document.querySelector("main"), { childList: true, subtree: true });
      moved();
      document.body.dataset.connected = "yes";
    });
    // Another table has other values, and so another policy, though nobody touched a control.
    $(document).on("shiny:value", (event) => {
      if (event.name === "harmless_choice") moved();
      if (event.name === "columns") setTimeout(findColumns, 0);
    });
    $(document).on("shiny:disconnected", () => {
      const note = document.createElement("div");
      note.className = "gone";
      note.setAttribute("role", "alert");
      note.textContent = "The studio has ended or lost its connection. Reload the page if it still runs.";
      document.body.prepend(note);
      document.body.classList.add("ended");
    });
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready);
  else ready();
})();
