package api

import "github.com/luanette/luanette/internal/base/rawjson"

// maxDefinitions is how many bytes of $defs a schema may have. Types that come later are
// plain objects.
const maxDefinitions = 64 << 10

// Definitions are the schemas of types that a schema refers to.
type Definitions struct {
	// Write appends the schema of a type. It may refer to further ones.
	Write func(out []byte, name string) []byte

	names []string // in the order of their first use
	known map[string]bool
}

// Refer appends a reference to a type.
func (d *Definitions) Refer(out []byte, name string) []byte {
	if !d.known[name] {
		if d.known == nil {
			d.known = map[string]bool{}
		}
		d.known[name] = true
		d.names = append(d.names, name)
	}
	return append(rawjson.AppendText(append(out, `{"$ref":`...), "#/$defs/"+name), '}')
}

// AppendTo appends the member $defs to a schema that is not closed yet.
func (d *Definitions) AppendTo(out []byte) []byte {
	if len(d.names) == 0 {
		return out
	}
	out = append(out, `,"$defs":{`...)
	start := len(out)
	for i := 0; i < len(d.names); i++ { // the list grows
		if i > 0 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendText(out, d.names[i]), ':')
		if len(out)-start > maxDefinitions {
			out = append(out, `{"type":"object"}`...)
			continue
		}
		out = d.Write(out, d.names[i])
	}
	return append(out, '}')
}
