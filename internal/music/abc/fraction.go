package abc

import "fmt"

// Fraction is a positive number such as 3/2. The parser keeps both parts small.
type Fraction struct {
	Num int `json:"num"`
	Den int `json:"den"`
}

// maxPart bounds numerators and denominators in the text.
const maxPart = 9999

// String reads "3/2", or "3" for whole numbers.
func (f Fraction) String() string {
	if f.Den == 1 {
		return fmt.Sprint(f.Num)
	}
	return fmt.Sprintf("%d/%d", f.Num, f.Den)
}

// whole is the number of time units in a whole note. Dividing it by the
// denominators that music uses (powers of two, 3, 9, 27, 5, 7, 11) is exact.
const whole = 1024 * 27 * 5 * 7 * 11

// maxUnits is the longest time a tune may last: about a million whole notes.
const maxUnits = whole << 20

// scale multiplies a time by num/den, rounded, and stops at maxUnits. With
// times up to maxUnits and parts up to maxPart nothing overflows.
func scale(units int64, num, den int) int64 {
	return min((units*int64(num)+int64(den)/2)/int64(den), maxUnits)
}
