package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/chat/agent"
)

// notes is a Memory in memory.
type notes struct{ sections []agent.Section }

func (n *notes) Load(context.Context) ([]agent.Section, error) { return n.sections, nil }

func (n *notes) Save(_ context.Context, sections []agent.Section) error {
	n.sections = sections
	return nil
}

func (n *notes) String() string {
	var all []string
	for _, s := range n.sections {
		all = append(all, fmt.Sprintf("%s=%.8s pinned=%v", s.Name, s.Text, s.Pinned))
	}
	return strings.Join(all, "; ")
}

func TestMemory(t *testing.T) {
	t.Parallel()
	memory := &notes{sections: []agent.Section{{Name: "work", Text: "a bakery", Updated: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}}}
	s := play(t, newToolSource(), `
		system ## Memory
		system - work (8 bytes, updated 2026-01-02)
		use read_memory {"sections":["work","pets"]}
		---
		expect a bakery
		expect "\"missing\":[\"pets\"]"
		use update_memory {"sections":{"pets":"a cat","work":null},"pin":["pets"]}
		---
		expect "\"updated\":[\"pets\"],\"deleted\":[\"work\"],\"evicted\":[]"
		use update_memory {"sections":"{{\"town\":\"Bern\"}}","unpin":"pets"}
		---
		use update_memory {"pin":["unknown"]}
		use update_memory {"sections":{"x":7}}
		use update_memory {"key":"pets","value":"a dog"}
		use update_memory {}
		---
		expect no section
		expect read the arguments of update_memory
		expect "unknown field \"key\""
		expect "send {\"sections\": {\"name\": \"text\""
		expect nothing is to be changed
		say noted
	`)
	reply := s.turn(t, "I have a cat", func(r *agent.Request) { r.Memory = memory })
	if reply.Text() != "noted" || memory.String() != "pets=a cat pinned=false; town=Bern pinned=false" {
		t.Errorf("reply %q, stored %s", reply.Text(), memory)
	}
}

// TestMemoryEviction checks that a full memory removes the oldest entries that are not pinned.
func TestMemoryEviction(t *testing.T) {
	t.Parallel()
	memory := &notes{}
	for i, name := range []string{"pinned", "oldest", "older", "newer"} {
		memory.sections = append(memory.sections, agent.Section{
			Name: name, Text: strings.Repeat("x", 31<<10), Pinned: name == "pinned", Updated: time.Unix(int64(1000+i), 0),
		})
	}
	big := strings.Repeat("y", 31<<10)
	s := play(t, newToolSource(), `
		use update_memory {"sections":{"new":"`+big+`"}}
		---
		expect "\"evicted\":[\"oldest\"]"
		use update_memory {"sections":{"n1":"`+big+`","n2":"`+big+`","n3":"`+big+`"},"pin":["new"]}
		---
		expect limit_exceeded: memory is full
		use update_memory {"sections":{"huge":"`+big+big+`"}}
		---
		expect limit_exceeded: section
		say ok
	`)
	s.turn(t, "remember", func(r *agent.Request) { r.Memory, r.Limits.PromptBytes = memory, 1<<20 })
	if got := memory.String(); got != "newer=xxxxxxxx pinned=false; new=yyyyyyyy pinned=false; older=xxxxxxxx pinned=false; pinned=xxxxxxxx pinned=true" &&
		got != "new=yyyyyyyy pinned=false; newer=xxxxxxxx pinned=false; older=xxxxxxxx pinned=false; pinned=xxxxxxxx pinned=true" {
		t.Errorf("stored %s", got)
	}
}
