package lua

import (
	"fmt"
	"strings"
	"time"
)

// The conversion specifiers of os.date: those of one byte, and those that
// stand after the modifiers E and O.
const (
	dateSpecifiers  = "aAbBcCdDeFgGhHIjmMnprRStTuUVwWxXyYzZ%"
	dateSpecifiersE = "cCxXyY"
	dateSpecifiersO = "deHImMSuUVwWy"
)

// The years that dates may have, as C counts them in an int from 1900 on.
const (
	minYear = -1<<31 + 1900
	maxYear = 1<<31 - 1 + 1900
)

// cutSpecifier reads the conversion specifier after a '%'. Modifiers are
// dropped: in the "C" locale they change nothing.
func cutSpecifier(format string) (specifier byte, rest string, ok bool) {
	if format == "" {
		return 0, "", false
	}
	switch c := format[0]; {
	case strings.IndexByte(dateSpecifiers, c) >= 0:
		return c, format[1:], true
	case len(format) == 1:
	case c == 'E' && strings.IndexByte(dateSpecifiersE, format[1]) >= 0,
		c == 'O' && strings.IndexByte(dateSpecifiersO, format[1]) >= 0:
		return format[1], format[2:], true
	}
	return 0, format, false
}

// appendDate writes what one conversion specifier stands for.
func appendDate(dst []byte, t time.Time, specifier byte) []byte {
	switch specifier {
	case 'c':
		return appendDates(dst, t, "%a %b %e %H:%M:%S %Y")
	case 'D', 'x':
		return appendDates(dst, t, "%m/%d/%y")
	case 'F':
		return appendDates(dst, t, "%Y-%m-%d")
	case 'r':
		return appendDates(dst, t, "%I:%M:%S %p")
	case 'R':
		return appendDates(dst, t, "%H:%M")
	case 'T', 'X':
		return appendDates(dst, t, "%H:%M:%S")
	case 'a':
		return t.AppendFormat(dst, "Mon")
	case 'A':
		return append(dst, t.Weekday().String()...)
	case 'b', 'h':
		return t.AppendFormat(dst, "Jan")
	case 'B':
		return append(dst, t.Month().String()...)
	case 'p':
		return t.AppendFormat(dst, "PM")
	case 'z':
		return t.AppendFormat(dst, "-0700")
	case 'Z':
		zone, _ := t.Zone()
		return append(dst, zone...)
	case 'n':
		return append(dst, '\n')
	case 't':
		return append(dst, '\t')
	case '%':
		return append(dst, '%')
	}
	return appendDateNumber(dst, t, specifier)
}

// appendDates writes a format of valid specifiers of one byte.
func appendDates(dst []byte, t time.Time, format string) []byte {
	for k := 0; k < len(format); k++ {
		if format[k] != '%' {
			dst = append(dst, format[k])
			continue
		}
		k++
		dst = appendDate(dst, t, format[k])
	}
	return dst
}

func appendDateNumber(dst []byte, t time.Time, specifier byte) []byte {
	form, n := "%02d", 0
	isoYear, isoWeek := t.ISOWeek()
	switch specifier {
	case 'C':
		n = floorDivide(t.Year(), 100)
	case 'd':
		n = t.Day()
	case 'e':
		form, n = "%2d", t.Day()
	case 'g':
		n = isoYear - floorDivide(isoYear, 100)*100
	case 'G':
		form, n = "%d", isoYear
	case 'H':
		n = t.Hour()
	case 'I':
		n = (t.Hour()+11)%12 + 1
	case 'j':
		form, n = "%03d", t.YearDay()
	case 'm':
		n = int(t.Month())
	case 'M':
		n = t.Minute()
	case 'S':
		n = t.Second()
	case 'u':
		form, n = "%d", (int(t.Weekday())+6)%7+1
	case 'U':
		n = (t.YearDay() + 6 - int(t.Weekday())) / 7
	case 'V':
		n = isoWeek
	case 'w':
		form, n = "%d", int(t.Weekday())
	case 'W':
		n = (t.YearDay() + 6 - (int(t.Weekday())+6)%7) / 7
	case 'y':
		n = t.Year() - floorDivide(t.Year(), 100)*100
	case 'Y':
		form, n = "%d", t.Year()
	}
	return fmt.Appendf(dst, form, n)
}

func floorDivide(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// dateFields are the fields of a date table that os.time reads, in the order
// it complains about them. Offset is what C subtracts before it stores them
// in an int.
var dateFields = [...]struct {
	name      string
	byDefault int // -1: must be there
	offset    int
}{
	{"year", -1, 1900}, {"month", -1, 1}, {"day", -1, 0}, {"hour", 12, 0}, {"min", 0, 0}, {"sec", 0, 0},
}

// makeTime is C's mktime: fields may be out of their ranges. DST says whether
// the fields count daylight saving time; nil leaves it to the zone.
func makeTime(fields [len(dateFields)]int, dst *bool, zone *time.Location) time.Time {
	t := time.Date(fields[0], time.Month(fields[1]), fields[2], fields[3], fields[4], fields[5], 0, zone)
	if dst != nil && *dst != t.IsDST() {
		shift := time.Hour
		if *dst {
			shift = -shift
		}
		t = t.Add(shift)
	}
	return t
}
