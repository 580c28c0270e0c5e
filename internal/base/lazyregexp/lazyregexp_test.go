package lazyregexp

import "testing"

func TestNew(t *testing.T) {
	t.Parallel()
	digits := New(`^\d+$`)
	if !digits().MatchString("42") || digits().MatchString("x") || digits() != digits() {
		t.Error("the expression is not the same each time")
	}
	defer func() {
		if recover() == nil {
			t.Error("an invalid expression did not panic")
		}
	}()
	New(`(`)
}
