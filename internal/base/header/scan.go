package header

import "bytes"

var newline = []byte("\r\n")

// Scan is Read for those who want to know a few headers and keep none: a line that
// came in the message before as well takes no memory.
func (r *Reader) Scan(lines []byte, heed func(key, value string) Verdict) bool {
	for i := 0; string(lines) != "\r\n"; i++ {
		line, rest, _ := bytes.Cut(lines, newline)
		lines = rest
		key, value, ok := r.scan(i, line)
		if !ok || heed(key, value) == Odd {
			return false
		}
	}
	return true
}

func (r *Reader) scan(i int, line []byte) (key, value string, ok bool) {
	if i < len(r.lines) && r.lines[i].line == string(line) {
		return r.lines[i].key, r.lines[i].value, true
	}
	return r.field(i, string(line))
}
