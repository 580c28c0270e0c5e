package abc

// loudness decides how hard a note is struck: the first of a bar has velocity first,
// those on a strong beat strong, others weak.
type loudness struct {
	first, strong, weak int
	every               int    // strong beats are this many beats apart
	even                bool   // every note has the velocity strong
	pattern             string // f, m and p for each beat, in place of every
	delta               int    // what a crescendo adds
	shift               int    // what the options add to all
}

// maxVelocity is the largest velocity.
const maxVelocity = 127

// defaultVelocity is the velocity of a weak beat without dynamics.
const defaultVelocity = 80

func newLoudness(velocity int) loudness {
	return loudness{first: 105, strong: 95, weak: defaultVelocity, delta: 15, shift: velocity - defaultVelocity}
}

// beats sets the strong beats of a meter: every third or every second one.
func (l *loudness) beats(m Meter) {
	if m.free() {
		m.Beat = 4
	}
	switch {
	case m.Beat%3 == 0:
		l.every = 3
	case m.Beat%2 == 0:
		l.every = 2
	default:
		l.every = m.Beat
	}
}

// at is the velocity of a note that begins a time after its bar line.
func (l *loudness) at(time int64, m Meter) int {
	if m.free() {
		m.Den = 4
	}
	beat := time * int64(m.Den)
	v := l.weak
	switch n := int(beat / whole); {
	case l.even:
		v = l.strong
	case l.pattern != "" && beat%whole == 0:
		v = l.patterned(n % len(l.pattern))
	case time == 0:
		v = l.first
	case beat%whole == 0 && n%max(l.every, 1) == 0:
		v = l.strong
	}
	return min(max(v+l.shift, 1), maxVelocity)
}

func (l *loudness) patterned(beat int) int {
	switch l.pattern[beat] {
	case 'f':
		return l.first
	case 'm':
		return l.strong
	}
	return l.weak
}

// add makes all beats louder or softer from here on.
func (l *loudness) add(n int) {
	for _, v := range []*int{&l.first, &l.strong, &l.weak} {
		*v = min(max(*v+n, 1), maxVelocity)
	}
}

// dynamics are the marks of loudness, by the velocities of the first, the strong and
// the weak beats.
var dynamics = map[string][3]int{
	"pppp": {20, 10, 5}, "ppp": {30, 20, 10}, "pp": {45, 35, 20}, "p": {60, 50, 35}, "mp": {75, 65, 50},
	"mf": {90, 80, 65}, "f": {105, 95, 80}, "ff": {120, 110, 95}, "fff": {127, 125, 110}, "ffff": {127, 127, 125},
}

// swells are the ends of crescendo and diminuendo, by their direction. Both ends
// change the loudness.
var swells = map[string]int{
	"crescendo(": 1, "crescendo)": 1, "<(": 1, "<)": 1,
	"diminuendo(": -1, "diminuendo)": -1, ">(": -1, ">)": -1,
}

// mark applies a dynamic mark or the end of a swell.
func (l *loudness) mark(name string) {
	if v, ok := dynamics[name]; ok {
		l.first, l.strong, l.weak, l.every = v[0], v[1], v[2], 1
		return
	}
	l.add(swells[name] * l.delta)
}
