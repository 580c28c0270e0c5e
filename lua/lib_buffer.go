package lua

import "unsafe"

// textBuffer builds a string whose length the script chooses: what it grows by
// is charged before it grows.
type textBuffer struct {
	c *Call
	b []byte
}

// add appends s.
func (t *textBuffer) add(s string) error {
	if len(t.b)+len(s) > cap(t.b) {
		if err := t.grow(len(s)); err != nil {
			return err
		}
	}
	t.b = append(t.b, s...)
	return nil
}

// grow makes room for n more bytes.
func (t *textBuffer) grow(n int) error {
	size := max(2*cap(t.b), len(t.b)+n, 64)
	if err := t.c.Alloc(size); err != nil {
		return err
	}
	if err := t.c.Step(size / bytesPerStep); err != nil {
		return err
	}
	b := make([]byte, len(t.b), size)
	copy(b, t.b)
	t.b = b
	return nil
}

// value ends the building with the string that was built.
func (t *textBuffer) value() (Value, error) {
	if waste := cap(t.b) - len(t.b); len(t.b) <= 40 || waste > len(t.b)/4 {
		return t.c.newString(unsafe.String(unsafe.SliceData(t.b), len(t.b)))
	}
	v := newStr(unsafe.String(unsafe.SliceData(t.b), len(t.b))).value()
	t.b = nil
	return v, t.c.Alloc(strOverhead)
}

// finish returns the string that was built.
func (t *textBuffer) finish() error {
	v, err := t.value()
	if err != nil {
		return err
	}
	return t.c.Return(v)
}
