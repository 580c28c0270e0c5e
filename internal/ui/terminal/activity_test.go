package terminal_test

import "testing"

func TestActivityIsShownFirst(t *testing.T) {
	t.Parallel()
	p := newFakeServer(t).start(80, 24)
	p.waitFor("─ Activity 2 ")
	p.waitFor("claude-code")
}

func TestDecideAndUndoInActivity(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t).withHistory()
	s.answer("approval_decide", map[string]any{})
	p := s.start(80, 24)
	p.waitFor("1 pending approval")
	p.waitFor("a note about milk")
	p.types("a")
	p.waitFor("Allow 2 effects")
	p.types("y")
	p.waitFor("files.write_file allowed")
	if want := `approval_decide {"approval_id":"a1","decision":"allow","plan":"p1"}`; !s.wasCalled(want) {
		t.Errorf("%s was not called", want)
	}

	p.types("1u") // the job that it started
	p.waitFor("Undo 1 of 2 changes?")
	p.waitFor("nothing undoes it")
	p.types("y")
	p.waitFor("import is being undone")
	if want := `approval_decide {"approval_id":"u1","decision":"allow"}`; !s.wasCalled(want) {
		t.Errorf("%s was not called", want)
	}
}
