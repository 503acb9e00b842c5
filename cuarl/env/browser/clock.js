// A page that is replayed goes by the clock of its recording; time passes as usual.
((offset) => {
  const Real = Date;
  const now = () => Real.now() + offset;
  const Shifted = new Proxy(Real, {
    apply: () => new Real(now()).toString(),
    construct: (target, given, as) => Reflect.construct(target, given.length ? given : [now()], as),
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  });
  Real.prototype.constructor = Shifted;
  globalThis.Date = Shifted;
})(%d);
