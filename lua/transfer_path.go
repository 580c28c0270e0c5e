package lua

import (
	"fmt"
	"strings"
	"unsafe"
)

// pathFinder looks for ways to objects, for messages: breadth first from the
// roots, so that it finds short ones.
type pathFinder struct {
	state *State
	// from tells of every object found how it was reached.
	from  map[unsafe.Pointer]step
	queue []Value
}

// step leads from one object to the next.
type step struct {
	owner Value
	label string
}

// stuckAt returns the error about an object that cannot be transferred.
func (s *State) stuckAt(v Value, problem string) *TransferError {
	return &TransferError{Path: s.newPathFinder().path(v), Problem: problem}
}

// newPathFinder finds the ways to all objects of a state.
func (s *State) newPathFinder() *pathFinder {
	p := &pathFinder{state: s, from: map[unsafe.Pointer]step{}}
	p.root("globals", s.globals)
	p.root("loaded modules", s.loaded)
	p.root("preloaded modules", s.preload)
	p.root("registry", s.registry)
	for kind, m := range s.metas {
		p.root("metatable of "+Kind(kind).Type()+" values", m)
	}
	for _, v := range s.gc.finalizable {
		p.visit(Nil, "objects with finalizers", v)
	}
	for _, v := range s.gc.pending {
		p.visit(Nil, "objects to be finalized", v)
	}
	if h := s.main.hook; h != nil {
		p.visit(Nil, "hook", h.fn)
	}
	for len(p.queue) > 0 {
		v := p.queue[0]
		p.queue = p.queue[1:]
		p.expand(v)
	}
	return p
}

// path names the way to v.
func (p *pathFinder) path(v Value) string {
	var labels []string
	for {
		s, ok := p.from[v.p]
		if !ok {
			return "state"
		}
		labels = append(labels, s.label)
		if s.owner.p == nil {
			break
		}
		v = s.owner
	}
	var b strings.Builder
	for i := len(labels) - 1; i >= 0; i-- {
		b.WriteString(labels[i])
	}
	return b.String()
}

func (p *pathFinder) root(name string, t *Table) {
	if t != nil {
		p.visit(Nil, name, t.Value())
	}
}

func (p *pathFinder) visit(owner Value, label string, v Value) {
	if v.Kind() < KindTable || !v.isTable() && (*header)(v.p).bits&bitShared != 0 {
		return
	}
	if _, ok := p.from[v.p]; ok {
		return
	}
	p.from[v.p] = step{owner, label}
	p.queue = append(p.queue, v)
}

func (p *pathFinder) expand(v Value) {
	switch v.Kind() {
	case KindTable:
		p.expandTable(v, v.table())
	case KindFunction:
		p.expandFunction(v, v.function())
	case KindUserdata:
		u := (*Userdata)(v.p)
		for i, x := range u.values {
			p.visit(v, fmt.Sprintf("(user value %d)", i+1), x)
		}
		if u.meta != nil {
			p.visit(v, "(metatable)", u.meta.Value())
		}
	case KindThread:
		p.expandThread(v, (*Thread)(v.p))
	case kindLight:
		p.visit(v, "(variable)", *(*Upvalue)(v.p).v)
	}
}

func (p *pathFinder) expandTable(v Value, t *Table) {
	for k, x := range t.All() {
		p.visit(v, keyLabel(k), x)
		p.visit(v, "(key)", k)
	}
	if t.meta != nil {
		p.visit(v, "(metatable)", t.meta.Value())
	}
}

func keyLabel(k Value) string {
	switch name, isString := k.AsString(); {
	case isString && isIdentifier(name):
		return "." + name
	case isString:
		return fmt.Sprintf("[%q]", name)
	}
	return "[" + k.String() + "]"
}

func (p *pathFinder) expandFunction(v Value, f *Function) {
	for i, u := range f.upvalues {
		p.visit(v, "(upvalue "+f.upvalueName(i)+")", *u.v)
		if u.isOpen() {
			p.visit(v, "(coroutine of upvalue "+f.upvalueName(i)+")", u.thread.Value())
		}
	}
	for i, x := range f.bound {
		p.visit(v, fmt.Sprintf("(value %d)", i+1), x)
	}
}

func (p *pathFinder) expandThread(v Value, t *Thread) {
	for i := range t.frames {
		f := &t.frames[i]
		proto := t.function(f).proto
		if proto == nil {
			continue
		}
		for reg := range int(proto.maxStack) {
			if name, ok := proto.localIn(reg, int(f.pc)); ok {
				p.visit(v, "(local "+name+")", t.stack[int(f.fn)+1+reg])
			}
		}
	}
	for _, x := range t.stack[:t.used()] {
		p.visit(v, "(stack)", x)
	}
	p.visit(v, "(error)", t.failure)
	if t.hook != nil {
		p.visit(v, "(hook)", t.hook.fn)
	}
}
