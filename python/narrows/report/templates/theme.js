// Light or dark: as the system has it, or as the reader has chosen, which is kept for other pages and other days
// where the browser lets pages keep anything.
const narrowsTheme = (() => {
  const KEY = "narrows-theme", root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)");
  const told = [];
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const tell = () => told.forEach((one) => one());
  try {
    const kept = localStorage.getItem(KEY);
    if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  } catch { /* the system decides */ }
  system.addEventListener("change", tell);
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem(KEY, root.dataset.theme); } catch { /* for this page only */ }
      tell();
    });
  });
  return { isDark, onChange: (one) => told.push(one) };
})();
