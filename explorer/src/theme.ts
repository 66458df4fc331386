import { byId } from "./dom";

const KEY = "agglo-theme";

/** Light or dark: as the system has it, until the reader chooses. */
export class Theme {
  private readonly system = matchMedia("(prefers-color-scheme: dark)");

  constructor(private readonly changed: () => void) {
    this.apply();
    this.system.addEventListener("change", () => this.apply());
    byId<HTMLButtonElement>("theme").addEventListener("click", () => {
      remember(this.dark ? "light" : "dark");
      this.apply();
    });
  }

  get dark(): boolean {
    const chosen = remembered();
    return chosen ? chosen === "dark" : this.system.matches;
  }

  private apply(): void {
    document.documentElement.dataset.theme = this.dark ? "dark" : "light";
    this.changed();
  }
}

// A page that is opened from a disk, or in a frame, may have no storage.
let choice: string | null = null;

function remembered(): string | null {
  try {
    return localStorage.getItem(KEY) ?? choice;
  } catch {
    return choice;
  }
}

function remember(theme: string): void {
  choice = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    return; // kept until the page is left
  }
}
