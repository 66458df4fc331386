/** An element of the page; texts are set as texts, never read as markup. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<Record<string, string | boolean | ((event: Event) => void)>> = {},
  ...inside: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (typeof value === "boolean") made.toggleAttribute(name, value);
    else if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
}

/** The element of the page that has this id. */
export function byId<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found as T;
}

export const number = (value: number): string => value.toLocaleString("en");

export const counted = (value: number, what: string): string => `${number(value)} ${what}${value === 1 ? "" : "s"}`;

/** The same function, called once things have been quiet for a while. */
export function settled<A extends unknown[]>(call: (...values: A) => void, wait: number): (...values: A) => void {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => call(...values), wait);
  };
}

/** Hands a file to the reader. */
export function download(blob: Blob, name: string): void {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
