package pin

import "unicode/utf8"

// appendNormalized writes a text in lower case, with lookalikes replaced by what they
// look like, without hidden characters and emphasis, and with runs of white space as
// one blank.
func appendNormalized(out []byte, text string) []byte {
	blank := false
	for _, r := range text {
		as := normalizedRune(r)
		switch {
		case as == ' ':
			blank = len(out) > 0
			continue
		case as == 0:
			continue
		case blank:
			out = append(out, ' ')
			blank = false
		}
		if as < utf8.RuneSelf {
			out = append(out, byte(as))
		} else {
			out = utf8.AppendRune(out, as)
		}
	}
	return out
}

// normalizedRune is the character that stands for r, 0 for none.
func normalizedRune(r rune) rune {
	if r < utf8.RuneSelf {
		return rune(ascii[r])
	}
	return normalizeRune(r)
}

// ascii is normalizeRune for ASCII.
var ascii = func() (table [utf8.RuneSelf]byte) {
	for r := range table {
		table[r] = byte(normalizeRune(rune(r)))
	}
	return table
}()

func normalizeRune(r rune) rune {
	switch r {
	case ' ', '\n', '\t', '\r', '\u00a0':
		return ' '
	case '*', '`':
		return 0
	}
	if invisibleKind(r) != "" {
		return 0
	}
	return letterOf(r)
}

// letterOf is the lower-case Latin letter that a character looks like.
func letterOf(r rune) rune {
	if r >= 0xff01 && r <= 0xff5e { // full width
		r -= 0xfee0
	} else if r >= utf8.RuneSelf {
		if like, ok := lookalikes[r]; ok {
			r = like
		}
	}
	if r >= 'A' && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

// plainText reports whether a text has visible ASCII characters only.
func plainText(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c >= 0x7f) && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// kind is the role of a byte of normalized text in words.
type kind byte

const (
	other  kind = iota // between words
	letter             // part of a word
	joint              // part of a name of several words
)

// kinds are the kinds of all bytes. Letters are the characters of \w.
var kinds = func() (table [256]kind) {
	for c := range table {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_':
			table[c] = letter
		case c == '-', c == '.':
			table[c] = joint
		}
	}
	return table
}()
