// What a browser shows outside of the page, where no click reaches it: drop-down lists are made part of the page, and pickers
// of dates, times and colours stay closed, so that such fields are filled by the keyboard. Run in each document before its own
// scripts; components (shadow DOM) are looked after as well, closed ones too.
(() => {
  const LISTS = 'select:not([multiple]):not([size]), ::picker(select) {appearance: base-select}';
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

  const picked = (event) => {
    const el = event.composedPath()[0];
    return el instanceof HTMLInputElement && PICKED.test(el.type) ? el : null;
  };
  const onClick = (event) => {
    if (picked(event)) event.preventDefault();
  };
  const submit = (form) => {  // what Enter does in a field, as its default is prevented
    const button = form?.querySelector('button:not([type]), [type=submit], [type=image]');
    if (button) button.click();
    else if (form?.querySelectorAll('input:not([type=hidden])').length === 1) form.requestSubmit();
  };
  const onKey = (event) => {
    const el = picked(event);
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
