package lua

import "slices"

// SameCode tells whether two functions were compiled from the same text: they do
// the same whenever the variables around them are the same. Where they stand and
// where they find those variables does not matter.
func (f *Function) SameCode(g *Function) bool {
	if f.proto == nil || g.proto == nil {
		return f.proto == g.proto && f.host == g.host
	}
	return f.proto.same(g.proto, true)
}

// same compares two prototypes. The outermost may find its upvalues elsewhere.
func (p *Proto) same(q *Proto, outermost bool) bool {
	return p == q || p.params == q.params && p.vararg == q.vararg &&
		slices.Equal(p.code, q.code) &&
		slices.EqualFunc(p.constants, q.constants, sameConstant) &&
		slices.EqualFunc(p.upvalues, q.upvalues, func(a, b upvalueDesc) bool {
			return a.name == b.name && (outermost || a.inStack == b.inStack && a.index == b.index)
		}) &&
		slices.EqualFunc(p.protos, q.protos, func(a, b *Proto) bool { return a.same(b, false) })
}

func sameConstant(a, b Value) bool {
	if x, ok := a.AsString(); ok {
		y, ok := b.AsString()
		return ok && x == y
	}
	return a == b
}
