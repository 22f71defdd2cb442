// Colours are the page's own (currentColor), so that dark mode and printing need no second drawing.
const narrow = window.innerWidth < 500;
const config = {
  background: "transparent",
  font: "system-ui, sans-serif",
  view: { stroke: null },
  axis: {
    labelColor: "currentColor", titleColor: "currentColor", domainColor: "currentColor",
    tickColor: "currentColor", gridColor: "currentColor", gridOpacity: 0.13, domainOpacity: 0.4,
    tickOpacity: 0.4, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500, labelLimit: narrow ? 110 : 230,
  },
  legend: {
    labelColor: "currentColor", titleColor: "currentColor", orient: "top", labelFontSize: 12,
    titleFontSize: 12, titleFontWeight: 500, symbolOpacity: 1, labelLimit: 260,
  },
};
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
