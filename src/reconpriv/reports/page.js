// Colours are the page's own (currentColor), so that dark mode and printing need no second drawing.
const config = { axis: { labelLimit: window.innerWidth < 500 ? 110 : 230 } };
const specs = JSON.parse(document.getElementById("charts").textContent);
const drawn = Object.entries(specs).map(([id, spec]) =>
  vegaEmbed(document.getElementById(id), spec, {
    config, renderer: "svg", actions: false, tooltip: { theme: "custom" },
  })
);
Promise.all(drawn).then(
  () => { document.documentElement.dataset.drawn = String(drawn.length); },
  (problem) => { document.documentElement.dataset.problem = String(problem); }
);
for (const button of document.querySelectorAll(".copy button")) {
  button.addEventListener("click", async () => {
    const text = button.parentElement.querySelector("pre").textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(button.parentElement.querySelector("pre"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}
