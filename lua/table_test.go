package lua

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// model is a table as simple as can be: a map and the order of insertion.
type model struct {
	values map[Value]Value
}

// TestTableAgainstModel does random operations on a table and on a map and
// compares them: every key, the border, and a full traversal.
func TestTableAgainstModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		tb := NewTable(r.IntN(4), r.IntN(12))
		m := model{map[Value]Value{}}
		keys := make([]Value, 0, 80)
		for i := range 40 {
			keys = append(keys, Int(int64(i)-2))
		}
		for i := range 20 {
			keys = append(keys, newConstant(fmt.Sprint("k", i)).value(), Float(float64(i)+0.5))
		}
		keys = append(keys, Bool(true), Bool(false), NewTable(0, 0).Value())
		for step := range 600 {
			k := keys[r.IntN(len(keys))]
			v := Int(int64(step))
			if r.IntN(3) == 0 {
				v = Nil
			}
			if err := tb.Set(k, v); err != nil {
				t.Fatal(err)
			}
			if v.IsNil() {
				delete(m.values, k)
			} else {
				m.values[k] = v
			}
			if step%20 == 0 {
				m.check(t, seed, tb, keys)
			}
		}
		m.check(t, seed, tb, keys)
	}
}

func (m model) check(t *testing.T, seed uint64, tb *Table, keys []Value) {
	t.Helper()
	for _, k := range keys {
		if got := tb.Get(k); got != m.values[k] {
			t.Fatalf("seed %d: key %v holds %v, want %v", seed, k, got, m.values[k])
		}
	}
	if n := int64(tb.Len()); n > 0 && tb.GetInt(n).IsNil() || !tb.GetInt(n+1).IsNil() {
		t.Fatalf("seed %d: %d is no border", seed, n)
	}
	seen := 0
	for k, v := range tb.All() {
		if m.values[k] != v {
			t.Fatalf("seed %d: traversal gives %v = %v", seed, k, v)
		}
		seen++
	}
	if seen != len(m.values) {
		t.Fatalf("seed %d: traversal gives %d pairs, want %d", seed, seen, len(m.values))
	}
}

func TestTableKeepsInsertionOrder(t *testing.T) {
	t.Parallel()
	tb := NewTable(0, 0)
	for i := range 100 {
		tb.SetString(fmt.Sprint("key", i*37%100), Int(int64(i)))
	}
	want := int64(0)
	for _, v := range tb.All() {
		if v.int() != want {
			t.Fatalf("pair %d holds %v", want, v)
		}
		want++
	}
}

func TestTraversalMayRemove(t *testing.T) {
	t.Parallel()
	tb := NewTable(0, 0)
	for i := range int64(50) {
		tb.SetInt(i+1, Bool(true))
		tb.SetString(fmt.Sprint(i), Bool(true))
	}
	n := 0
	for k := Nil; ; n++ {
		next, _, ok, err := tb.Next(k)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if err := tb.Set(next, Nil); err != nil {
			t.Fatal(err)
		}
		k = next
	}
	if n != 100 || tb.Len() != 0 {
		t.Errorf("removed %d of 100 pairs, length %d", n, tb.Len())
	}
}

func TestTableRefusesKeys(t *testing.T) {
	t.Parallel()
	tb := NewTable(0, 0)
	for _, k := range []Value{Nil, Float(nan())} {
		if err := tb.Set(k, Int(1)); err == nil {
			t.Errorf("key %v was taken", k)
		}
	}
	if err := tb.Set(Float(2), Int(1)); err != nil || tb.GetInt(2) != Int(1) {
		t.Errorf("a float key with an integer value is not that integer: %v", err)
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestBorrowedTableLeavesItsTemplate(t *testing.T) {
	t.Parallel()
	template := NewTable(0, 0)
	for i := range 20 {
		template.SetString(fmt.Sprint("f", i), Int(int64(i)))
	}
	one, two := template.borrow(), template.borrow()
	one.SetString("f3", Int(-3))
	one.SetString("new", Int(99))
	if template.GetString("f3") != Int(3) || two.GetString("f3") != Int(3) || !two.GetString("new").IsNil() {
		t.Error("a write to a borrowed table shows elsewhere")
	}
	if one.GetString("f3") != Int(-3) || one.GetString("new") != Int(99) || one.GetString("f19") != Int(19) {
		t.Error("a write to a borrowed table was lost")
	}
}
