/** Creates an element. Strings become text nodes and are never parsed as markup. */
export function create<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<Record<string, string | boolean | ((event: Event) => void)>> = {},
  ...inside: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") created.addEventListener(name, value);
    else if (typeof value === "boolean") created.toggleAttribute(name, value);
    else if (value !== undefined) created.setAttribute(name, value);
  }
  created.append(...inside);
  return created;
}

/** Returns the element with this id; throws if the page has none. */
export function getById<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found as T;
}

export const formatNumber = (value: number): string => value.toLocaleString("en");

export const formatCount = (value: number, what: string): string => `${formatNumber(value)} ${what}${value === 1 ? "" : "s"}`;

/** Delays calls of a function until there has been none for `wait` milliseconds. */
export function debounce<A extends unknown[]>(call: (...values: A) => void, wait: number): (...values: A) => void {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => call(...values), wait);
  };
}

/** Starts the download of a file. */
export function download(blob: Blob, name: string): void {
  const link = create("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
