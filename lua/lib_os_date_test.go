package lua

import (
	"testing"
	"time"
)

func TestDateSpecifiers(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("EST", -5*3600)
	got := string(appendDates(nil, time.Unix(86400*4, 0).In(zone),
		"%c|%C|%D|%e|%F|%g|%G|%h|%I|%j|%n|%p|%r|%R|%t|%u|%U|%V|%w|%W|%x|%X|%y|%z|%Z|%%|%A|%B|%d|%H|%M|%S|%T|%Y|%a|%b|%m"))
	want := "Sun Jan  4 19:00:00 1970|19|01/04/70| 4|1970-01-04|70|1970|Jan|07|004|\n|PM|07:00:00 PM|19:00|\t|7|01|01|0|00|" +
		"01/04/70|19:00:00|70|-0500|EST|%|Sunday|January|04|19|00|00|19:00:00|1970|Sun|Jan|01"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestCutSpecifier(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]byte{"Y": 'Y', "Ecx": 'c', "Od": 'd', "%": '%', "E": 0, "": 0, "Ez": 0, "9": 0, "Oc": 0} {
		if got, _, ok := cutSpecifier(format); got != want || ok != (want != 0) {
			t.Errorf("cutSpecifier(%q) = %q, %v", format, got, ok)
		}
	}
}

func TestMakeTimeNormalises(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fields [6]int
		want   int64
	}{
		{[6]int{1970, 1, 1, 0, 0, 0}, 0}, {[6]int{1970, 1, 1, 0, 0, -1}, -1}, {[6]int{1970, 14, 1, 0, 0, 0}, 396 * 86400},
		{[6]int{1970, -10, 1, 0, 0, 0}, -334 * 86400}, {[6]int{1970, 1, 1, 0, 0, 1 << 31}, 1 << 31},
	} {
		if got := makeTime(test.fields, nil, time.UTC).Unix(); got != test.want {
			t.Errorf("makeTime(%v) = %d, want %d", test.fields, got, test.want)
		}
	}
	yes := true
	if got := makeTime([6]int{1970, 1, 1, 0, 0, 0}, &yes, time.UTC).Unix(); got != -3600 {
		t.Errorf("midnight in daylight saving time = %d", got)
	}
}
