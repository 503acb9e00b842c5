// What a browser shows outside of the page, where no click reaches it: drop-down lists are made part of the page, and pickers
// of dates, times and colours stay closed, so that such fields are filled by the keyboard. Run in each document before its own
// scripts; components (shadow DOM) are looked after as well, closed ones too.
(() => {
  const LISTS = `select:not([multiple]):is(:not([size]), [size=""], [size="0"], [size="1"]) {appearance: base-select !important}
    ::picker(select) {appearance: base-select !important}`;
  const PICKED = /^(date|datetime-local|month|week|time|color)$/;
  const closed = Symbol.for('cuarl.shadow');
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(LISTS);
  const seen = new WeakSet();

  for (const kind of [Document, ShadowRoot]) {
    const sheets = Object.getOwnPropertyDescriptor(kind.prototype, 'adoptedStyleSheets');
    Object.defineProperty(kind.prototype, 'adoptedStyleSheets', {
      ...sheets,
      set(list) {  // components set theirs, and leave ours out
        const keeps = seen.has(this) && ![...list].includes(sheet);
        sheets.set.call(this, keeps ? [...list, sheet] : list);
      },
    });
  }

  // lists that the sheet does not reach: a page's own important style, or a size that is no number
  const openList = (event) => {
    const list = event.composedPath().find((node) => node instanceof HTMLSelectElement);
    if (list && !list.multiple && list.size <= 1 && getComputedStyle(list).appearance !== 'base-select')
      list.style.setProperty('appearance', 'base-select', 'important');
  };
  const picked = (event) => {
    const el = event.composedPath()[0];
    return el instanceof HTMLInputElement && PICKED.test(el.type) ? el : null;
  };
  const typed = new WeakMap();
  const setValue = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  const typeColour = (el, event) => {  // a colour is typed: six hexadecimal digits
    if (event.ctrlKey || event.altKey || event.metaKey || !/^[#0-9a-f]$/i.test(event.key)) return;
    const digits = event.key === '#' ? '' : (typed.get(el) ?? '') + event.key.toLowerCase();
    typed.set(el, digits);
    if (digits.length < 6) return;
    typed.delete(el);
    if (el.disabled || el.readOnly || el.value === `#${digits}`) return;
    setValue.call(el, `#${digits}`);
    for (const kind of ['input', 'change']) el.dispatchEvent(new Event(kind, {bubbles: true, composed: kind === 'input'}));
  };
  const onClick = (event) => {
    const el = picked(event);
    if (el) event.preventDefault();
    if (el?.type === 'color') typed.delete(el);
  };
  const submit = (form) => {  // what Enter does in a field, as its default is prevented
    const button = form?.querySelector('button:not([type]), [type=submit], [type=image]');
    if (button) button.click();
    else if (form?.querySelectorAll('input:not([type=hidden])').length === 1) form.requestSubmit();
  };
  const onKey = (event) => {
    const el = picked(event);
    if (el?.type === 'color') typeColour(el, event);
    if (!el || el.type === 'color') return;  // that opens by a click, which is prevented
    const opens = event.key === 'F4' || event.key === ' ' || (event.altKey && /^Arrow(Up|Down)$/.test(event.key));
    if (!opens && event.key !== 'Enter') return;
    event.preventDefault();
    if (event.key === 'Enter') submit(el.form);
  };
  const tend = (root) => {
    if (seen.has(root)) return;
    seen.add(root);
    try {
      root.adoptedStyleSheets = [...root.adoptedStyleSheets];
    } catch {  // of another document, whose own copy of this script tends it
      return;
    }
    root.addEventListener('click', onClick, true);
    for (const kind of ['pointerdown', 'mousedown', 'keydown']) root.addEventListener(kind, openList, true);
    root.addEventListener('keydown', onKey, true);
  };
  tend(document);

  const {attachShadow} = Element.prototype;
  Element.prototype.attachShadow = function (options) {
    const root = attachShadow.call(this, options);
    if (options?.mode === 'closed') Object.defineProperty(this, closed, {value: root});
    tend(root);
    return root;
  };
  // components that are declared in markup are met when something goes on in them
  for (const kind of ['mouseover', 'focusin', 'keydown']) {
    const meet = (event) => event.composedPath().forEach((node) => node instanceof ShadowRoot && tend(node));
    addEventListener(kind, meet, true);
  }

  const {showPicker} = HTMLInputElement.prototype;
  HTMLInputElement.prototype.showPicker = function () {
    return PICKED.test(this.type) ? undefined : showPicker.call(this);
  };
})();
