// The next action towards a page's goal, from its present state: {kind, x, y, ...} in CSS pixels, or null.
// Targets come from the DOM, actions are those of a mouse and a keyboard. Called anew before every action.
globalThis.cuarlOracle = (() => {
  const all = (css, root = document) => [...root.querySelectorAll(css)];
  const one = (css, root = document) => root.querySelector(css);
  const text = (el) => el.textContent.replace(/\s+/g, ' ').trim();
  const goal = () => text(one('#query'));
  const quoted = () => [...goal().matchAll(/"([^"]*)"/g)].map((m) => m[1]);
  const shown = (el) => {
    const r = el?.getBoundingClientRect();
    return !!r && r.width > 0 && r.height > 0 && getComputedStyle(el).visibility !== 'hidden';
  };
  const memory = {};

  // --- actions -------------------------------------------------------------------------------------------------
  const key = (...keys) => ({kind: 'key', keys});
  const type = (value) => ({kind: 'type', text: String(value)});
  const wait = (seconds = 0.1) => ({kind: 'wait', seconds});
  const drag = (...path) => ({kind: 'drag', path});
  const middle = (el) => {
    const r = el.getBoundingClientRect();
    return [r.left + r.width / 2, r.top + r.height / 2];
  };
  // the middle, or where something else lies over it, a point of the element that is free
  const free = (el) => {
    const r = el.getBoundingClientRect(), shares = [0.5, 0.25, 0.75, 0.1, 0.9];
    const points = shares.flatMap((v) => shares.map((h) => [r.left + h * r.width, r.top + v * r.height]));
    return points.find(([x, y]) => el.contains(document.elementFromPoint(x, y))) ?? middle(el);
  };
  const scroller = (el) => {
    for (let up = el.parentElement; up && up !== document.body && up !== document.documentElement; up = up.parentElement) {
      if (/auto|scroll/.test(getComputedStyle(up).overflowY) && up.scrollHeight > up.clientHeight + 1) return up;
    }
    return null;
  };
  // a click on an element, or the turn of the wheel that brings it into view
  const click = (el) => {
    if (!el) return null;
    const [x, y] = free(el);
    const box = scroller(el);
    const area = box ? box.getBoundingClientRect() : {top: 0, bottom: innerHeight, left: 0, right: innerWidth};
    const top = Math.max(area.top, 0), bottom = Math.min(area.bottom, innerHeight);
    if (y < top + 2 || y > bottom - 2) {
      return {
        kind: 'scroll', x: Math.min(Math.max((area.left + area.right) / 2, 1), innerWidth - 2), y: (top + bottom) / 2,
        direction: y > bottom - 2 ? 'down' : 'up', amount: Math.max(20, Math.abs(y - (top + bottom) / 2)),
      };
    }
    return {kind: 'click', x, y};
  };
  const clickText = (css, wanted) => click(all(css).find((el) => text(el) === wanted && shown(el)));
  const submit = () => click(one('#subbtn') ?? one('#submit') ?? all('button').find((el) => text(el) === 'Submit'));
  // null once the field holds the value
  const fill = (el, value) => {
    if (el.value === String(value)) return null;
    if (document.activeElement !== el) return click(el);
    if (el.value !== '' && memory.selected !== el.value) {
      memory.selected = el.value;
      return key('ctrl', 'a');
    }
    memory.selected = undefined;
    return type(value);
  };
  const first = (...steps) => {
    for (const step of steps) {
      const action = typeof step === 'function' ? step() : step;
      if (action) return action;
    }
    return null;
  };
  const form = (...pairs) => first(...pairs.map(([css, value]) => () => fill(one(css), value)), submit);
  const nth = (word) => parseInt(word, 10) - 1;

  // --- kinds of pages ------------------------------------------------------------------------------------------
  const byButton = () => clickText('#area button', quoted()[0]);
  const boxes = (wanted) => first(
    ...all('#area label').map((label) => () => {
      const box = one('input', label);
      return box.checked === wanted(text(label)) ? null : click(box);
    }), submit);
  const checkboxes = () => {
    const names = goal().replace(/^Select /, '').replace(/ and click Submit\.?$/, '').split(', ');
    return boxes((name) => names.includes(name));
  };
  const similar = () => {
    const words = goal().replace(/^Select words similar to /, '').replace(/ and click Submit\.?$/, '').split(', ');
    return boxes((name) => SYNONYMS.some((set) => set.includes(name) && words.some((word) => set.includes(word))));
  };
  const date = () => {
    const [month, day, year] = goal().match(/(\d+)\/(\d+)\/(\d+)/).slice(1).map(Number);
    const field = one('#datepicker');
    if (field.value) {
      const now = field.value.split('/').map(Number);
      if (now[0] === month && now[1] === day && now[2] === year) return submit();
    }
    const picker = one('#ui-datepicker-div');
    if (!shown(picker)) return click(field);
    if (Number(getComputedStyle(picker).opacity) < 1) return wait();
    const title = new Date(`${text(one('.ui-datepicker-month', picker))} 1, ${text(one('.ui-datepicker-year', picker))}`);
    const ahead = (year - title.getFullYear()) * 12 + month - 1 - title.getMonth();
    if (ahead) return click(one(ahead > 0 ? '.ui-datepicker-next' : '.ui-datepicker-prev', picker));
    return click(all('td a', picker).find((el) => text(el) === String(day)));
  };
  const collapsible = () => {
    const panel = one('.ui-accordion-content');
    if (one('.ui-accordion-header').getAttribute('aria-expanded') !== 'true') return click(one('.ui-accordion-header'));
    return $(panel).is(':animated') ? wait() : submit();
  };
  const linkInPanels = (panels, opener, open) => () => {
    const link = all('.alink').find((el) => text(el) === quoted()[0]);
    if (!link) return click(all('.ui-tabs-anchor').pop());
    const panel = link.closest(panels);
    if (!open(panel)) return click(opener(panel));
    return $(panel).is(':animated') ? wait() : click(link);
  };
  const tabLink = linkInPanels('.ui-tabs-panel', (panel) => one(`a[href="#${panel.id}"]`), (panel) => shown(panel));
  const sectionLink = linkInPanels('.ui-accordion-content', (panel) => panel.previousElementSibling,
    (panel) => panel.previousElementSibling.getAttribute('aria-expanded') === 'true');
  const menu = () => {
    const path = goal().replace(/^Select /, '').split('>');
    let list = one('#menu');
    for (const [depth, name] of path.entries()) {
      const item = [...list.children].find((li) => text(li.firstElementChild) === name);
      if (depth === path.length - 1) return click(item.firstElementChild);
      const inner = one('ul', item);
      if (!shown(inner)) {
        const [x, y] = middle(item.firstElementChild);
        memory.hovered = memory.hovered === name ? '' : name;
        return memory.hovered ? {kind: 'move', x, y} : wait(0.4);
      }
      list = inner;
    }
    return null;
  };
  const iconMenu = () => {
    if (!shown(one('#menu'))) return click(one('#open-menu'));
    const icon = one('#query .ui-icon');
    const name = icon ? Object.keys(PROBLEM_SET).find((label) => icon.classList.contains(PROBLEM_SET[label])) : quoted()[1];
    const item = all('#menu li').find((li) => text(li) === name);
    if (shown(item)) return click(item.firstElementChild);
    memory.hovered = !memory.hovered;
    const [x, y] = middle(item.parentElement.closest('li').firstElementChild);
    return memory.hovered ? {kind: 'move', x, y} : wait(0.4);
  };
  const shapesOf = (root) => all('text, rect, circle, polygon', root).filter((el) => el.id !== 'shape-container').map((el) => {
    const tag = el.tagName, letter = tag === 'text';
    const name = letter ? text(el) : {rect: 'rectangle', circle: 'circle', polygon: 'triangle'}[tag];
    const kind = !letter ? 'shape' : /\d/.test(name) ? 'digit' : 'letter';
    const size = letter ? parseFloat(el.getAttribute('font-size')) : el.getBBox().width;
    return {el, name, kind, colour: el.getAttribute('fill'), size: size > 15 ? 'large' : 'small'};
  });
  const described = (words) => (shape) => words.every((word) =>
    word === 'item' || [shape.name, shape.kind, shape.colour, shape.size].includes(word));
  const countShapes = () => {
    const words = goal().match(/^How many (.*)s are there/)[1].split(' ');
    return clickText('#count-buttons button', String(shapesOf(one('#area_svg')).filter(described(words)).length));
  };
  const dragWay = (css) => () => {
    if (memory.dragged) return submit();
    memory.dragged = true;
    const way = goal().match(/left|right|up|down/)[0], [x, y] = middle(one(css));
    const by = 12, [dx, dy] = {left: [-by, 0], right: [by, 0], up: [0, -by], down: [0, by]}[way];
    return drag([x, y], [x + dx, y + dy]);
  };
  // past the middle of the target, so that the list makes room there
  const dragInList = (from, to) => {
    const [x, y] = middle(from), [x2, y2] = middle(to);
    return drag([x, y], [x2, y2 + Math.sign(y2 - y) * 4], [x2, y2 + Math.sign(y2 - y) * 3]);
  };
  const moveItem = () => {
    const items = all('#sortable li'), name = goal().match(/^Drag (\S+)/)[1];
    const at = items.findIndex((li) => text(li) === name), told = goal().slice(name.length + 6);
    const to = /top\./.test(told) ? 0 : /bottom\./.test(told) ? items.length - 1 : /down by/.test(told) ? at + 1
      : /up by/.test(told) ? at - 1 : parseInt(told.match(/\d+/)[0], 10) - 1;
    return dragInList(items[at], items[to]);
  };
  const moveInGrid = () => {
    const items = all('#sortable li'), name = goal().match(/^Drag (\S+)/)[1];
    const at = items.findIndex((li) => text(li) === name), told = goal().slice(name.length + 6);
    let to = {'left by one.': at - 1, 'right by one.': at + 1, 'up by one.': at - 3, 'down by one.': at + 3}[told];
    if (to === undefined) {
      const row = /top/.test(told) ? 0 : /bottom/.test(told) ? 2 : 1;
      const column = /left/.test(told) ? 0 : /right/.test(told) ? 2 : 1;
      to = row * 3 + column;
    }
    const [x, y] = middle(items[to]), back = to < at ? -1 : 1;
    return drag(middle(items[at]), [x + 8 * back, y + 2], [x + 9 * back, y + 2]);
  };
  const sortNumbers = () => {
    const items = all('#sortable li'), values = items.map((li) => Number(text(li)));
    const sorted = [...values].sort((a, b) => a - b), wrong = values.findIndex((v, i) => v !== sorted[i]);
    if (wrong < 0) return submit();
    return dragInList(items[values.lastIndexOf(sorted[wrong])], items[wrong]);
  };
  const within = (el, box) => {
    const [x, y] = middle(el), r = box.getBoundingClientRect();
    return x > r.left && x < r.right && y > r.top && y < r.bottom;
  };
  const roomIn = (box, others) => {
    const r = box.getBoundingClientRect();
    for (let y = r.top + 11; y < r.bottom - 9; y += 8) {
      for (let x = r.left + 11; x < r.right - 9; x += 8) {
        if (others.every((el) => Math.hypot(middle(el)[0] - x, middle(el)[1] - y) > 16)) return [x, y];
      }
    }
    return middle(box);
  };
  const intoBoxes = () => {
    const containers = all('#shape-container'), items = shapesOf(one('svg'));
    const word = goal().match(/^Drag all (\S+)/)[1].replace(/s$/, '');
    for (const {el, name, colour} of items) {
      const mine = name === word || colour === word;
      const box = mine ? containers[0] : containers[1];
      const others = items.map((item) => item.el).filter((other) => other !== el);
      if (box && !within(el, box)) return drag(middle(el), roomIn(box, others));
    }
    return submit();
  };
  const highlight = (css) => {
    if (memory.lit) return submit();
    memory.lit = true;
    const range = document.createRange();
    range.selectNodeContents(css);
    const rects = [...range.getClientRects()].filter((r) => r.width > 0);
    const start = rects[0], end = rects[rects.length - 1];
    return drag([start.left, start.top + start.height / 2], [Math.min(end.right + 3, innerWidth - 1), end.top + end.height / 2]);
  };
  const copied = (source) => {
    const field = one('#answer-input');
    if (field.value === source.value) return submit();
    if (!memory.copied) {
      if (document.activeElement !== source) return click(source);
      memory.marked = !memory.marked;
      if (memory.marked) return key('ctrl', 'a');
      memory.copied = true;
      return key('ctrl', 'c');
    }
    return document.activeElement === field ? key('ctrl', 'v') : click(field);
  };
  const slide = (slider, value) => {
    const $slider = $(slider), now = $slider.slider('value'), handle = one('.ui-slider-handle', slider);
    if (now === value) return null;
    const min = $slider.slider('option', 'min'), max = $slider.slider('option', 'max');
    if (document.activeElement === handle && Math.abs(now - value) <= 4) return key(value > now ? 'Right' : 'Left');
    const r = slider.getBoundingClientRect(), share = (value - min) / (max - min), [x, y] = middle(handle);
    return $slider.slider('option', 'orientation') === 'vertical'
      ? drag([x, y], [x, r.bottom - share * r.height]) : drag([x, y], [r.left + share * r.width, y]);
  };
  const buyTicket = () => {
    const trips = all('.flight').map((el) => ({
      el, price: Number(one('.buy-ticket', el).dataset.price), time: Number(one('.time-duration', el).dataset.duration)}));
    const by = /cost/.test(goal()) ? 'price' : 'time', low = /cheapest|shortest/.test(goal());
    trips.sort((a, b) => (low ? 1 : -1) * (a[by] - b[by]));
    return click(one('.buy-ticket', trips[0].el));
  };
  const search = () => {
    const field = one('#search-text'), name = quoted()[0], place = nth(goal().match(/the (\d+)\w\w search result/)[1]);
    if (field.value !== name) return fill(field, name);
    if (!all('#page-content a').length) return click(one('#search'));
    const page = Math.floor(place / 3) + 1, active = text(one('#pagination .active'));
    if (Number(active) !== page) return clickText('#pagination a', String(page));
    return click(all('#page-content a')[place % 3]);
  };
  const movies = () => {
    const [, genre, name, year] = goal().match(/^Search for (.*) movies directed by (.*) from year (\d+)/);
    const fields = all('#area input').map((el) => {
      const row = el.closest('p, tr, .row, .field') ?? el.parentElement;
      return [el, /Genre/.test(text(row)) ? genre : /Director/.test(text(row)) ? name : year];
    });
    const go = all('#area button, #area .final, #area .ui-submit').find(shown);
    return first(...fields.map(([el, value]) => () => fill(el, value)), () => click(go));
  };
  const tree = () => {
    const label = all('#tree span').find((el) => text(el) === quoted()[0]);
    for (let up = label.parentElement.parentElement; up && up.id !== 'tree'; up = up.parentElement) {
      if (up.tagName === 'UL' && !shown(up)) {
        let outer = up;
        for (let p = up.parentElement; p && p.id !== 'tree'; p = p.parentElement) if (p.tagName === 'UL' && !shown(p)) outer = p;
        return click(one('span', outer.parentElement));
      }
    }
    return click(label);
  };
  const oddOrEven = () => first(...all('#numbers .row').map((row) => () => {
    const wanted = one(Number(text(one('.display-number', row))) % 2 ? '.odd' : '.even', row);
    return wanted.classList.contains('selected') ? null : click(wanted);
  }), submit);
  const generated = () => {
    const shownNumber = text(one('#display-number')), n = Number(shownNumber), bound = Number((goal().match(/\d+/) ?? [0])[0]);
    const good = shownNumber !== '-' && (/less/.test(goal()) ? n < bound : /greater/.test(goal()) ? n > bound
      : /odd/.test(goal()) ? n % 2 === 1 : n % 2 === 0);
    return good ? submit() : click(one('#generate'));
  };
  const guess = () => {
    const low = one('#higher'), high = one('#lower'), field = one('#tt');
    memory.least ??= 0; memory.most ??= 9;
    if (!low.classList.contains('hide')) memory.least = Math.max(memory.least, Number(text(one('span', low))) + 1);
    if (!high.classList.contains('hide')) memory.most = Math.min(memory.most, Number(text(one('span', high))) - 1);
    const next = Math.floor((memory.least + memory.most) / 2);
    return fill(field, next) ?? submit();
  };
  const table = (name) => text(all('#tab tr').find((row) => text(row.cells[0]) === name).cells[1]);
  const arithmetic = () => {
    const [, a, sign, b] = text(one('#math-problem')).match(/(\d+) (\S) (\d+)/);
    const value = {'+': +a + +b, '-': a - b, x: a * b}[sign];
    return form(['#math-answer', value]);
  };
  const algebra = () => {
    const [left, right] = text(one('#math-problem')).split(' = '), [a, sign, b] = left.split(' ');
    const c = Number(right);
    const value = sign === '+' ? c - Number(a === 'x' ? b : a) : a === 'x' ? c + Number(b) : Number(a) - c;
    return form(['#math-answer', value]);
  };
  const scrollTo = (area, end) => {
    const left = end === 'bottom' ? area.scrollHeight - area.clientHeight - area.scrollTop : area.scrollTop;
    if (left < 3) return null;
    const [x, y] = middle(area);
    return {kind: 'scroll', x, y, direction: end === 'bottom' ? 'down' : 'up', amount: Math.ceil(left) + 20};
  };
  const agreement = () => {
    const name = quoted()[0];
    if (/^Click the cancel/.test(goal())) return one('#cancel').disabled ? scrollTo(one('#text-area'), 'bottom') : click(one('#cancel'));
    const button = /press "Cancel"/.test(goal()) ? '#cancel' : '#agree';
    if (one('#name').disabled) return scrollTo(one('#text-area'), 'bottom');
    return fill(one('#name'), name) ?? click(one(button));
  };
  const login = () => {
    const cancel = one('#popup-cancel');
    return cancel ? click(cancel) : form(['#username', quoted()[0]], ['#password', quoted()[1]]);
  };
  const autocomplete = () => {
    const [start, end = ''] = quoted(), field = one('#tags');
    const item = ui_utils.COUNTRIES.find((name) => name.startsWith(start) && name.endsWith(end));
    if (field.value !== item) return fill(field, item);
    // the list hides the button until it is closed
    return all('.ui-autocomplete').some(shown) ? key('Escape') : submit();
  };
  const list = () => {
    const select = one('#options'), name = goal().match(/^Select (.*) from the list/)[1];
    const option = [...select.options].find((el) => text(el) === name);
    if (option.selected) return submit();
    return shown(option) ? click(option) : click(select);
  };
  const selectric = () => {
    const height = goal().match(/^Choose (.*) from the dropdown/)[1];
    if (one('#dropdown').value === height) return clickText('#buttons button', quoted()[0]);
    const row = all('.selectric-items li').find((li) => text(li) === height);
    return shown(row) ? click(row) : click(one('.selectric'));
  };
  const resize = () => {
    if (memory.resized) return submit();
    memory.resized = true;
    const handle = one('.ui-resizable-se'), [x, y] = middle(handle), by = /larger/.test(goal()) ? 12 : -12;
    return /width/.test(goal()) ? drag([x, y], [x + by, y]) : drag([x, y], [x, y + by]);
  };
  const phoneBook = () => {
    const [, kind, name] = goal().match(/(phone|email|address)/) ? [0, goal().match(/phone|email|address/)[0], goal().match(/^Find (\S+)/)[1]] : [];
    if (!name) return null;
    if (text(one('#contact .name')) !== name) return click(one('#pagination .next a'));
    return click(one(`#contact a.${kind.toLowerCase()}`));
  };
  const pie = () => {
    const label = all('#divWheel text').find((el) => text(el) === quoted()[0]);
    if (!memory.opened) {
      memory.opened = true;
      return click(all('#divWheel text').find((el) => text(el) === '+') ?? one('#divWheel'));
    }
    memory.waited ??= 0;
    // the items swing out and back; where they are meanwhile is no place to click
    return memory.waited++ < 2 ? wait(0.6) : click(label);
  };
  const sections = {
    'ascending-numbers': () => click(all('svg text').find((el) => text(el) === '1') ?? one('svg rect')),
    'buy-ticket': buyTicket,
    'choose-date': date, 'choose-date-easy': date, 'choose-date-medium': date, 'choose-date-nodelay': date,
    'choose-list': list,
    'click-button': byButton, 'unicode-test': byButton,
    'click-button-sequence': () => clickText('#area button', buttonsPushed.length ? 'TWO' : 'ONE'),
    'click-checkboxes': checkboxes, 'click-checkboxes-large': checkboxes, 'click-checkboxes-transfer': checkboxes,
    'click-checkboxes-soft': similar,
    'click-collapsible': collapsible, 'click-collapsible-nodelay': collapsible,
    'click-collapsible-2': sectionLink, 'click-collapsible-2-nodelay': sectionLink,
    'click-color': () => {
      const box = one('#query-color'), name = box ? box.style.backgroundColor : text(one('#query .bold'));
      return click(one(`#area [data-color="${name}"]`));
    },
    'click-dialog': () => click(one('.ui-dialog-titlebar-close')),
    'click-dialog-2': () => quoted()[0] === 'x' ? click(one('.ui-dialog-titlebar-close'))
      : clickText('.ui-dialog-buttonset button', quoted()[0]),
    'click-link': () => clickText('.alink', quoted()[0]),
    'click-menu': menu, 'click-menu-2': iconMenu,
    'click-option': checkboxesAsOption, 'click-pie': pie, 'click-pie-nodelay': pie,
    'click-shades': () => {
      const colour = goal().match(/shades of (\w+)/)[1];
      const left = all('#area span').find((el) => (el.dataset.color === colour) !== (el.className === 'selected'));
      return left ? click(left) : submit();
    },
    'click-shape': () => {
      const found = shapesOf(one('#area_svg')).find(described(goal().match(/^Click on an? (.*)$/)[1].split(' ')));
      return click(found?.el);
    },
    'click-tab': () => click(all('.ui-tabs-anchor').find((el) => text(el) === goal().match(/Tab #\d/)[0])),
    'click-tab-2': tabLink, 'click-tab-2-easy': tabLink, 'click-tab-2-medium': tabLink, 'click-tab-2-hard': tabLink,
    'click-test': () => click(one('#subbtn')),
    'click-test-2': () => clickText('button', 'ONE'),
    'click-test-transfer': () => clickText('button', goal().match(/ONE|TWO/)[0]),
    'click-widget': () => click(one(`#area [data-type="${quoted()[0]}"]`)),
    'copy-paste': () => copied(one('#to-copy')),
    'copy-paste-2': () => copied(one(`#text-${goal().match(/(\d)(?:st|nd|rd)/)[1]}`)),
    'count-shape': countShapes,
    'drag-box': () => memory.dragged ? submit() : (memory.dragged = true,
      drag(middle(one('#draggableSmall')), middle(one('#draggableLarge')))),
    'drag-circle': dragWay('svg circle'), 'drag-single-shape': dragWay('svg .black-shape'),
    'drag-items': moveItem, 'drag-items-grid': moveInGrid, 'drag-sort-numbers': sortNumbers,
    'drag-shapes': intoBoxes, 'drag-shapes-2': intoBoxes,
    'enter-date': () => {
      const [month, day, year] = goal().match(/(\d+)\/(\d+)\/(\d+)/).slice(1), field = one('#tt');
      if (field.value === `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`) return submit();
      if (document.activeElement === field) return type(month.padStart(2, '0') + day.padStart(2, '0') + year);
      const r = field.getBoundingClientRect();
      return {kind: 'click', x: r.left + 8, y: r.top + r.height / 2};
    },
    'enter-time': () => {
      const [, hour, minute, half] = goal().match(/(\d+):(\d+)\s*([AP]M)/i), field = one('#tt');
      if (field.value) return submit();
      if (document.activeElement === field) return type(hour.padStart(2, '0') + minute + half[0]);
      const r = field.getBoundingClientRect();
      return {kind: 'click', x: r.left + 8, y: r.top + r.height / 2};
    },
    'enter-password': () => form(['#password', quoted()[0]], ['#verify', quoted()[0]]),
    'enter-text': () => form(['#tt', quoted()[0]]), 'enter-text-dynamic': () => form(['#tt', quoted()[0]]),
    'enter-text-2': () => form(['#tt', /upper case/.test(goal()) ? quoted()[0].toUpperCase() : quoted()[0].toLowerCase()]),
    'find-greatest': () => {
      const cards = all('.card'), best = cards.reduce((a, b) => Number(text(a)) > Number(text(b)) ? a : b);
      return best.classList.contains('hidden') ? click(best) : submit();
    },
    'find-word': () => {
      const word = text(one('#area p')).split(' ')[nth(goal().match(/the (\d+)/)[1])].replace(/[^a-zA-Z]/g, '');
      return form(['#answer-input', word]);
    },
    'focus-text': () => click(one('#area input')),
    'focus-text-2': () => click(all('#area input')[nth(goal().match(/\d/)[0])]),
    'form-sequence': () => {
      const box = one(`#checkbox-${goal().match(/the (\d)/)[1]}`);
      return slide(one('#slider'), Number(goal().match(/Select (-?\d+)/)[1])) ?? (box.checked ? submit() : click(box));
    },
    'form-sequence-2': () => {
      const radio = all('#area input[type=radio]')[nth(goal().match(/the (\d)\w\w radio/)[1])];
      return radio.checked ? form([`#input-${goal().match(/the (\d)\w\w textbox/)[1]}`, quoted()[0]]) : click(radio);
    },
    'form-sequence-3': selectric,
    'generate-number': generated, 'guess-number': guess,
    'grid-coordinate': () => click(document.getElementById(goal().match(/\(-?\d,-?\d\)/)[0])),
    'highlight-text': () => highlight(one('#randomText')),
    'highlight-text-2': () => highlight(all('#randomText p')[nth(goal().match(/\d/)[0])]),
    'identify-shape': () => {
      const [shape] = shapesOf(one('#area_svg'));
      return click(one(`#area-buttons [data-type="${shape.kind === 'shape' ? shape.name : shape.kind}"]`));
    },
    'login-user': login, 'login-user-popup': login,
    'multi-layouts': movies, 'multi-orderings': movies, 'navigate-tree': tree, 'odd-or-even': oddOrEven,
    'phone-book': phoneBook,
    'read-table': () => form(['#tt', table(text(one('#query .bold')))]),
    'read-table-2': () => form(['#tt1', table(one('#ll1').dataset.key)], ['#tt2', table(one('#ll2').dataset.key)]),
    'resize-textarea': resize,
    'scroll-text': () => form(['#answer-input', one('#text-area').value.trim().split(/\s/).pop().replace(/[^a-zA-Z0-9]/g, '')]),
    'scroll-text-2': () => scrollTo(one('#text-area'), goal().match(/bottom|top/)[0]) ?? submit(),
    'search-engine': search, 'sign-agreement': agreement,
    'simple-arithmetic': arithmetic, 'simple-algebra': algebra,
    'text-transform': () => form(['#tt', text(one('#captcha'))]),
    'use-autocomplete': autocomplete, 'use-autocomplete-nodelay': autocomplete,
    'use-slider': () => slide(one('#slider'), Number(goal().match(/Select (-?\d+)/)[1])) ?? submit(),
    'use-slider-2': () => {
      const values = goal().match(/-?\d+/g).map(Number);
      return first(...all('.ui-slider').map((slider, i) => () => slide(slider, values[i])), submit);
    },
    'use-spinner': () => {
      const left = Number(goal().match(/-?\d+/)[0]) - Number(one('#spinner').value);
      return left ? click(one(left > 0 ? '.ui-spinner-up' : '.ui-spinner-down')) : submit();
    },
    'visual-addition': () => form(['#math-answer', all('.addition-block').length]),
  };
  function checkboxesAsOption() {
    const name = goal().match(/^Select (.*) and click Submit/)[1];
    const box = one('input', all('#area label').find((label) => text(label) === name));
    return box.checked ? submit() : click(box);
  }
  const oracle = (page) => sections[page]?.() ?? null;
  oracle.pages = Object.keys(sections);
  return oracle;
})();
