package conversation

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with conversations.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "talk_steps", Where: "turn IN (SELECT id FROM talk_turns WHERE person = PERSON)"},
		{Name: "talk_media", Where: "turn IN (SELECT id FROM talk_turns WHERE person = PERSON)"},
		{Name: "talk_client_calls", Where: "person = PERSON"},
		{Name: "talk_turns", Where: "person = PERSON"},
		{Name: "talk_documents", Where: "person = PERSON"},
		{Name: "talk_usage", Where: "person = PERSON"},
	}
}
