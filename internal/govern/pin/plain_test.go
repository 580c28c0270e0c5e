package pin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/core/tool"
)

// This is a plain implementation of what the package does, without shortcuts and
// caches. Tests compare the two.

// Scan is what the package finds in a definition of an upstream.
func Scan(raw []byte, upstream string, infos []tool.Info, own []string) []Finding {
	return contentOf(raw).allFindings(&mentions{upstream, namesOf(infos), ownNames(own)})
}

// ScanPlainly is the plain implementation of Scan.
func ScanPlainly(raw []byte, upstream string, infos []tool.Info, own []string) []Finding {
	definition, repeated := canonicalPlainly(raw)
	s := plainScanner{upstream: upstream, names: namingPlainly(infos, own)}
	switch {
	case !utf8.Valid(definition):
		s.add(Unreadable, "definition", "it is not valid UTF-8")
	case repeated:
		s.add(Repeated, "definition", "an object has two members of one name")
	}
	if len(definition) > longestDefinition {
		s.add(TooLong, "definition", fmt.Sprintf("%d bytes", len(definition)))
	}
	s.value("", definition)
	return s.found
}

type plainScanner struct {
	upstream string
	names    map[string]map[string]bool // by name: the namespaces that have such a tool, "" being ours
	found    []Finding
}

func (s *plainScanner) add(code Code, path, text string) {
	if len(s.found) < maxFindings {
		s.found = append(s.found, Finding{code, orWhole(path), text})
	}
}

func (s *plainScanner) value(path string, raw json.RawMessage) {
	if t := parts(raw); t != nil {
		for _, name := range t.names {
			inner := join(path, name, t.list)
			if !t.list {
				s.text(inner, name)
			}
			s.value(inner, t.values[name])
		}
		return
	}
	var text string
	if bytes.HasPrefix(raw, []byte{'"'}) && json.Unmarshal(raw, &text) == nil {
		s.text(path, text)
	}
}

func (s *plainScanner) text(path, text string) {
	if len(text) > longestText {
		s.add(TooLong, path, fmt.Sprintf("%d characters", utf8.RuneCountInString(text)))
	}
	one := scanner{content: &content{}}
	one.hidden(text)
	for _, f := range one.content.findings {
		s.add(f.Code, path, f.Text)
	}
	read := ReadPlainly(text)
	for _, p := range patterns {
		if at := p.words().FindStringIndex(read); at != nil {
			s.add(p.code, path, excerpt(read, at))
		}
	}
	if at := blob().FindStringIndex(text); at != nil {
		s.add(Encoded, path, excerpt(text, at))
	}
	if name := s.mention(read); name != "" {
		s.add(OtherTool, path, "it mentions "+name)
	}
}

func (s *plainScanner) mention(text string) string {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
	}) {
		word = strings.Trim(word, ".-")
		if owners := s.names[word]; owners != nil && !owners[s.upstream] {
			return word
		}
	}
	return ""
}

func namingPlainly(infos []tool.Info, own []string) map[string]map[string]bool {
	names := map[string]map[string]bool{}
	add := func(name, space string) {
		name = strings.ToLower(name)
		if len(name) < 8 || !strings.ContainsAny(name, "_-.") {
			return
		}
		if names[name] == nil {
			names[name] = map[string]bool{}
		}
		names[name][space] = true
	}
	for i := range infos {
		info := &infos[i]
		add(info.Name, info.Space)
		add(info.Ref.String(), info.Space)
		add(info.Space+"__"+info.Name, info.Space)
	}
	for _, name := range own {
		add(name, "")
	}
	return names
}

// ReadPlainly is the plain implementation of appendNormalized.
func ReadPlainly(text string) string {
	var b strings.Builder
	blank := false
	for _, r := range text {
		switch {
		case invisibleKind(r) != "" || r == '*' || r == '`':
			continue
		case strings.ContainsRune(" \n\t\r\u00a0", r):
			blank = b.Len() > 0
			continue
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteRune(letterOf(r))
	}
	return b.String()
}

func canonicalPlainly(raw []byte) (out []byte, repeated bool) {
	if !utf8.Valid(raw) {
		return slices.Clone(raw), false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	w := plainWriter{decoder: d}
	if err := w.value(); err != nil {
		return slices.Clone(raw), false
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return slices.Clone(raw), false
	}
	return w.out.Bytes(), w.repeated
}

type plainWriter struct {
	decoder  *json.Decoder
	out      bytes.Buffer
	repeated bool
}

func (w *plainWriter) value() error {
	token, err := w.decoder.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return w.object()
		}
		return w.array()
	case json.Number:
		w.out.WriteString(t.String())
	default:
		w.out.Write(encodedPlainly(t))
	}
	return nil
}

func (w *plainWriter) array() error {
	w.out.WriteByte('[')
	for first := true; w.decoder.More(); first = false {
		if !first {
			w.out.WriteByte(',')
		}
		if err := w.value(); err != nil {
			return err
		}
	}
	w.out.WriteByte(']')
	_, err := w.decoder.Token()
	return err
}

func (w *plainWriter) object() error {
	type member struct {
		name string
		text []byte
	}
	var members []member
	for w.decoder.More() {
		token, err := w.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		inner := plainWriter{decoder: w.decoder}
		if err := inner.value(); err != nil {
			return err
		}
		w.repeated = w.repeated || inner.repeated
		members = append(members, member{name, inner.out.Bytes()})
	}
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	w.out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			w.repeated = w.repeated || members[i-1].name == m.name
			w.out.WriteByte(',')
		}
		w.out.Write(encodedPlainly(m.name))
		w.out.WriteByte(':')
		w.out.Write(m.text)
	}
	w.out.WriteByte('}')
	_, err := w.decoder.Token()
	return err
}

// encodedPlainly is a scalar as JSON with as few escapes as possible.
func encodedPlainly(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // scalars always encode
	return bytes.TrimRight(b.Bytes(), "\n")
}

func shadowsPlainly(infos []tool.Info, own []string, settings *Settings) map[tool.Ref]shadow {
	found := map[tool.Ref]shadow{}
	ours := map[string]string{}
	for _, name := range own {
		ours[skeleton(name)] = name
	}
	exposed := map[string][]tool.Ref{} // by skeleton of the name it is exposed by
	within := map[tool.Ref][]tool.Ref{}
	for i := range infos {
		ref := infos[i].Ref
		looks := skeleton(ref.Name)
		if name, ok := ours[looks]; ok {
			found[ref] = shadow{of: name, own: true, refused: !plain(ref.Name)}
		}
		exposed[skeleton(ref.Space+"__"+ref.Name)] = append(exposed[skeleton(ref.Space+"__"+ref.Name)], ref)
		inside := tool.Ref{Space: ref.Space, Name: looks}
		within[inside] = append(within[inside], ref)
	}
	for _, alike := range exposed {
		if len(alike) > 1 {
			decideAlikePlainly(alike, settings, found)
		}
	}
	for _, alike := range within {
		if len(alike) > 1 {
			decideAlikePlainly(alike, settings, found)
		}
	}
	return found
}

func decideAlikePlainly(alike []tool.Ref, settings *Settings, found map[tool.Ref]shadow) {
	for _, ref := range alike {
		for _, other := range alike {
			if ref == other || found[ref].refused {
				continue
			}
			found[ref] = shadow{of: other.String(), refused: suspicion(ref, settings) > suspicion(other, settings)}
		}
	}
}
