import { getById } from "./dom";

const KEY = "agglo-theme";

/** Light or dark: the system's setting, until the reader chooses. */
export class Theme {
  private readonly system = matchMedia("(prefers-color-scheme: dark)");

  constructor(private readonly changed: () => void) {
    this.apply();
    this.system.addEventListener("change", () => this.apply());
    getById<HTMLButtonElement>("theme").addEventListener("click", () => {
      saveChoice(this.dark ? "light" : "dark");
      this.apply();
    });
  }

  get dark(): boolean {
    const chosen = readChoice();
    return chosen ? chosen === "dark" : this.system.matches;
  }

  private apply(): void {
    document.documentElement.dataset.theme = this.dark ? "dark" : "light";
    this.changed();
  }
}

// A page that is opened from a file, or in a frame, may have no storage.
let choice: string | null = null;

function readChoice(): string | null {
  try {
    return localStorage.getItem(KEY) ?? choice;
  } catch {
    return choice;
  }
}

function saveChoice(theme: string): void {
  choice = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    return; // remembered until the page is closed
  }
}
