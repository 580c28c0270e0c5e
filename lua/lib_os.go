package lua

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// OSLib is the library "os". It gives scripts the clock, the environment, the
// file system and other programs: it is no part of a sandbox.
var OSLib = NewLibrary("os", []Reg{
	{"clock", osClock},
	{"date", osDate},
	{"difftime", osDifftime},
	{"execute", osExecute},
	{"exit", osExit},
	{"getenv", osGetenv},
	{"remove", osRemove},
	{"rename", osRename},
	{"setlocale", osSetlocale},
	{"time", osTime},
	{"tmpname", osTmpname},
}, nil, nil)

// ExitError is returned when a script called os.exit. Scripts cannot catch
// it; the host decides what ending means.
type ExitError struct {
	// Code is the status the script wants the process to end with.
	Code int
}

func (e *ExitError) Error() string { return fmt.Sprintf("script exited with status %d", e.Code) }

// programStart is where os.clock counts from.
var programStart = time.Now()

// osClock gives the seconds since the program started. The reference gives
// processor time; here other states and the collector of Go would be in it.
func osClock(c *Call) error { return c.Return(Float(time.Since(programStart).Seconds())) }

func osGetenv(c *Call) error {
	name, err := c.CheckString(1)
	if err != nil {
		return err
	}
	value, ok := os.LookupEnv(name)
	if !ok {
		return c.Return(Nil)
	}
	return c.returnString(value)
}

func osRemove(c *Call) error {
	name, err := c.CheckString(1)
	if err != nil {
		return err
	}
	return c.Return(fileResult(os.Remove(name), name)...)
}

func osRename(c *Call) error {
	from, err := c.CheckString(1)
	if err != nil {
		return err
	}
	to, err := c.CheckString(2)
	if err != nil {
		return err
	}
	return c.Return(fileResult(os.Rename(from, to), "")...)
}

func osTmpname(c *Call) error {
	f, err := os.CreateTemp("", "lua_")
	if err != nil {
		return c.Errorf("unable to generate a unique filename")
	}
	defer func() { _ = f.Close() }()
	return c.returnString(f.Name())
}

func osExecute(c *Call) error {
	if c.Arg(1).IsNil() {
		_, err := exec.LookPath("sh")
		return c.Return(Bool(err == nil))
	}
	command, err := c.CheckString(1)
	if err != nil {
		return err
	}
	if w, ok := c.state.stdout().(interface{ Flush() error }); ok {
		if err := w.Flush(); err != nil {
			return c.Return(fileResult(err, "")...)
		}
	}
	cmd := shell(c, command)
	cmd.Stdout, cmd.Stderr = c.state.stdout(), c.state.stderr()
	return c.Return(exitResult(cmd, cmd.Run())...)
}

// exitResult tells how a program ended, as execute and close return it.
func exitResult(cmd *exec.Cmd, err error) []Value {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fileResult(err, "")
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return []Value{Nil, String("signal"), Int(int64(status.Signal()))}
	}
	code := cmd.ProcessState.ExitCode()
	ok := Nil
	if code == 0 {
		ok = Bool(true)
	}
	return []Value{ok, String("exit"), Int(int64(code))}
}

func osExit(c *Call) error {
	code := int64(0)
	if b, isBool := c.Arg(1).AsBool(); isBool {
		if !b {
			code = 1
		}
	} else {
		var err error
		if code, err = c.OptInt(1, 0); err != nil {
			return err
		}
	}
	return &ExitError{Code: int(int32(code))}
}

// osSetlocale knows the one locale "C".
func osSetlocale(c *Call) error {
	locale, err := c.OptString(1, "C")
	if err != nil {
		return err
	}
	if _, err := c.CheckOption(2, "all", "all", "collate", "ctype", "monetary", "numeric", "time"); err != nil {
		return err
	}
	switch locale {
	case "", "C", "POSIX":
		return c.Return(String("C"))
	}
	return c.Return(Nil)
}

func osDifftime(c *Call) error {
	a, err := c.CheckInt(1)
	if err != nil {
		return err
	}
	b, err := c.CheckInt(2)
	if err != nil {
		return err
	}
	return c.Return(Float(float64(a) - float64(b)))
}

func osDate(c *Call) error {
	format, err := c.OptString(1, "%c")
	if err != nil {
		return err
	}
	seconds, err := c.OptInt(2, time.Now().Unix())
	if err != nil {
		return err
	}
	format, utc := strings.CutPrefix(format, "!")
	// Beyond these the calendar of Go would overflow; the years C can express
	// are well within.
	const farthest = 1 << 57
	t := time.Unix(min(max(seconds, -farthest), farthest), 0)
	if utc {
		t = t.UTC()
	}
	if t.Year() < minYear || t.Year() > maxYear {
		return c.Errorf("date result cannot be represented in this installation")
	}
	if format == "*t" {
		return returnDateTable(c, t)
	}
	out := textBuffer{c: c}
	for {
		text, rest, found := strings.Cut(format, "%")
		if err := out.add(text); err != nil {
			return err
		}
		if !found {
			return out.finish()
		}
		specifier, after, ok := cutSpecifier(rest)
		if !ok {
			return c.ArgError(1, "invalid conversion specifier '%"+rest+"'")
		}
		if err := c.Step(1); err != nil {
			return err
		}
		out.b = appendDate(out.b, t, specifier)
		format = after
	}
}

func returnDateTable(c *Call, t time.Time) error {
	table, err := c.NewTable(0, 9)
	if err != nil {
		return err
	}
	if err := setDateFields(c, table.Value(), t); err != nil {
		return err
	}
	return c.Return(table.Value())
}

// setDateFields stores a time in the fields of a date table.
func setDateFields(c *Call, table Value, t time.Time) error {
	for _, field := range []struct {
		name  string
		value Value
	}{
		{"year", Int(int64(t.Year()))},
		{"month", Int(int64(t.Month()))},
		{"day", Int(int64(t.Day()))},
		{"hour", Int(int64(t.Hour()))},
		{"min", Int(int64(t.Minute()))},
		{"sec", Int(int64(t.Second()))},
		{"yday", Int(int64(t.YearDay()))},
		{"wday", Int(int64(t.Weekday()) + 1)},
		{"isdst", Bool(t.IsDST())},
	} {
		if err := c.SetIndex(table, String(field.name), field.value); err != nil {
			return err
		}
	}
	return nil
}

func osTime(c *Call) error {
	if c.Arg(1).IsNil() {
		return c.Return(Int(time.Now().Unix()))
	}
	table, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	var fields [len(dateFields)]int
	for i, field := range dateFields {
		if fields[i], err = dateField(c, table, field.name, field.byDefault, field.offset); err != nil {
			return err
		}
	}
	var dst *bool
	v, err := c.Index(table.Value(), String("isdst"))
	if err != nil {
		return err
	}
	if !v.IsNil() {
		truthy := v.Truthy()
		dst = &truthy
	}
	t := makeTime(fields, dst, time.Local)
	if t.Year() < minYear || t.Year() > maxYear || t.Unix() == -1 {
		return c.Errorf("time result cannot be represented in this installation")
	}
	if err := setDateFields(c, table.Value(), t); err != nil {
		return err
	}
	return c.Return(Int(t.Unix()))
}

// dateField reads one field of a date table.
func dateField(c *Call, table *Table, name string, byDefault, offset int) (int, error) {
	v, err := c.Index(table.Value(), String(name))
	if err != nil {
		return 0, err
	}
	n, ok := toInteger(v)
	switch {
	case !ok && !v.IsNil():
		return 0, c.Errorf("field '%s' is not an integer", name)
	case !ok && byDefault < 0:
		return 0, c.Errorf("field '%s' missing in date table", name)
	case !ok:
		return byDefault, nil
	}
	if n >= 0 && n-int64(offset) > math.MaxInt32 || n < 0 && n < math.MinInt32+int64(offset) {
		return 0, c.Errorf("field '%s' is out-of-bound", name)
	}
	return int(n), nil
}

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
