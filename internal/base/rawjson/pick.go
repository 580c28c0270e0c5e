package rawjson

import "encoding/json"

// Pick finds the values of several keys in one pass over object: out[i] becomes
// the value of keys[i], or nil when it is missing. It allocates nothing. Of
// repeated keys the last one counts.
func Pick(object json.RawMessage, keys []string, out []json.RawMessage) {
	clear(out)
	for m := Walk(object); m.Next(); {
		name := m.Name()
		for i, key := range keys {
			if string(name) == key {
				out[i] = m.Value
			}
		}
	}
}
