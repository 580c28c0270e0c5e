package telemetry

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/luanette/luanette/internal/core/principal"
)

// ownerAttributes says whose a span is. Spans of the local owner have none: where nobody
// else is, everything is theirs.
func ownerAttributes(o principal.Owner) []attribute.KeyValue {
	if o == (principal.Owner{ID: principal.LocalID}) {
		return nil
	}
	list := append(make([]attribute.KeyValue, 0, 3), attribute.String(KeyPrincipal, o.ID))
	if o.Org != "" {
		list = append(list, attribute.String(KeyOrg, o.Org))
	}
	if o.Person != "" {
		list = append(list, attribute.String(KeyPerson, o.Person))
	}
	return list
}

// owner returns whose a span is.
func (s *storedSpan) owner() (o principal.Owner) {
	for _, a := range s.attributes {
		switch a.Key {
		case KeyPrincipal:
			o.ID = a.Value.AsString()
		case KeyOrg:
			o.Org = a.Value.AsString()
		case KeyPerson:
			o.Person = a.Value.AsString()
		}
	}
	return o
}

// Reserved reports whether an attribute says whose a span is: scripts cannot set it.
func Reserved(key string) bool { return key == KeyPrincipal || key == KeyOrg || key == KeyPerson }

// visible returns the trace as a principal sees it: without the spans of others. The id of a
// trace can come from a client, so that a trace may have spans of several owners. ok is
// false if nothing is left.
func (k *storedTrace) visible(who principal.Principal) (seen storedTrace, ok bool) {
	if who.SeesAll() {
		return *k, true
	}
	for _, s := range k.spans {
		if !who.Sees(s.owner()) {
			continue
		}
		if !ok {
			seen, ok = storedTrace{id: k.id, name: s.name, start: s.start}, true
		}
		seen.take(s)
	}
	return seen, ok
}
