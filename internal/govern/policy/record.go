package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Label is a label of data, and where the data was read.
type Label struct {
	Name string `json:"label"`
	From string `json:"from"`           // "crm.get_customer"
	Line int    `json:"line,omitempty"` // of the script that read it
}

func (l Label) String() string { return at(l.From, l.Line) }

func at(what string, line int) string {
	if line <= 0 {
		return what
	}
	return fmt.Sprintf("%s (line %d)", what, line)
}

// record is the labels of what a run has read. Everything that belongs to one run
// shares it: scripts it calls, concurrent tasks.
type record struct {
	mu     sync.Mutex
	labels map[string]Label
}

type recordKey struct{}

func recordOf(ctx context.Context) *record {
	r, _ := ctx.Value(recordKey{}).(*record)
	return r
}

// add records labels; of a known label the first origin stays.
func (r *record) add(labels ...Label) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.labels == nil && len(labels) > 0 {
		r.labels = map[string]Label{}
	}
	for _, l := range labels {
		if _, known := r.labels[l.Name]; !known {
			r.labels[l.Name] = l
		}
	}
}

// all are the labels, by name.
func (r *record) all() []Label {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Label, 0, len(r.labels))
	for _, l := range r.labels {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// barred are the labels that a place does not accept.
func (r *record) barred(accepts []string) (list []Label) {
	for _, l := range r.all() {
		if !slices.Contains(accepts, l.Name) && !slices.Contains(accepts, "*") {
			list = append(list, l)
		}
	}
	return list
}

func namesOf(labels []Label) string {
	names := make([]string, len(labels))
	for i, l := range labels {
		names[i] = l.Name
	}
	return strings.Join(names, ", ")
}
