package lua

// charSet is a set of bytes.
type charSet [4]uint64

func (s *charSet) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

func (s *charSet) add(c byte) { s[c>>6] |= 1 << (c & 63) }

func (s *charSet) addRange(from, to byte) {
	for c := int(from); c <= int(to); c++ {
		s.add(byte(c))
	}
}

func (s *charSet) addSet(other *charSet) {
	for k := range s {
		s[k] |= other[k]
	}
}

func (s *charSet) inverted() *charSet {
	var inv charSet
	for k := range s {
		inv[k] = ^s[k]
	}
	return &inv
}

// charClasses holds, for each letter that names a class in patterns (%a, %D),
// the bytes of that class in the "C" locale; nil for what names no class.
var charClasses = buildCharClasses()

func buildCharClasses() (classes [256]*charSet) {
	for name, belongs := range map[byte]func(c byte) bool{
		'a': isAlpha,
		'c': func(c byte) bool { return c < ' ' || c == 127 },
		'd': isDecimalDigit,
		'g': isGraph,
		'l': func(c byte) bool { return c >= 'a' && c <= 'z' },
		'p': func(c byte) bool { return isGraph(c) && !isAlpha(c) && !isDecimalDigit(c) },
		's': isSpaceByte,
		'u': func(c byte) bool { return c >= 'A' && c <= 'Z' },
		'w': func(c byte) bool { return isAlpha(c) || isDecimalDigit(c) },
		'x': isHexDigit,
		'z': func(c byte) bool { return c == 0 },
	} {
		set := new(charSet)
		for c := range 256 {
			if belongs(byte(c)) {
				set.add(byte(c))
			}
		}
		classes[name] = set
		classes[name-'a'+'A'] = set.inverted()
	}
	return classes
}

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isGraph(c byte) bool { return c > ' ' && c < 127 }
