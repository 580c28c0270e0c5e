package wire

import "encoding/json"

// Pick finds the values of several keys in one pass over object: out[i] becomes
// the value of keys[i], or nil when it is missing. It allocates nothing. Of
// repeated keys the last one counts.
func Pick(object json.RawMessage, keys []string, out []json.RawMessage) {
	clear(out)
	walk(object, func(m member) error {
		key := keyText(m.key)
		for i, want := range keys {
			if string(key) == want {
				out[i] = m.value
			}
		}
		return nil
	})
}
