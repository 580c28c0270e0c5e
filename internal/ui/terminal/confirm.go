package terminal

import tea "charm.land/bubbletea/v2"

// confirmation asks before an action, and says what it will do.
type confirmation struct {
	question plain // empty if nothing is asked
	choices  []choice
}

// choice is an answer that does something.
type choice struct {
	key, label string
	do         tea.Cmd
}

// confirm asks a question. Any key that is not one of the choices means no.
func (m *model) confirm(question plain, choices ...choice) {
	m.confirmation = confirmation{question, choices}
}

// answer does what the user chose.
func (m *model) answer(key string) tea.Cmd {
	asked := m.confirmation
	m.confirmation = confirmation{}
	for _, c := range asked.choices {
		if c.key == key {
			return c.do
		}
	}
	m.message = message{"not done", false}
	return nil
}

// text is the question with its answers. If there is little room, the question is cut.
func (c *confirmation) text(width int) string {
	answers := ""
	for _, one := range c.choices {
		answers += "  " + one.key + " " + one.label
	}
	answers += "  n no"
	return cut(string(c.question), width-textWidth(answers)) + answers
}
