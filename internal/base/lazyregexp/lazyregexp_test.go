package lazyregexp

import "testing"

func TestNew(t *testing.T) {
	t.Parallel()
	digits := New(`^\d+$`)
	if first := digits(); !first.MatchString("42") || first.MatchString("x") || first != digits() {
		t.Error("the expression is not the same each time")
	}
	defer func() {
		if recover() == nil {
			t.Error("an invalid expression did not panic")
		}
	}()
	New(`(`)
}
