package terminal

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"
)

// undoPlan is how a job would be undone, as job_undo returns it.
type undoPlan struct {
	Status   plain `json:"status"`
	Approval plain `json:"approval_id"`
	Steps    []struct {
		Change  plain `json:"change"`
		Tool    plain `json:"tool"`
		Problem plain `json:"problem"`
	} `json:"steps"`
}

// undoPlanned is a plan that was made.
type undoPlanned struct {
	job  string
	plan undoPlan
	err  error
}

// undoJob makes the plan to undo a job. Nothing is undone before somebody agrees.
func (m *model) undoJob(id string) tea.Cmd {
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(m.ctx, actionTimeout)
		defer stop()
		done := undoPlanned{job: id}
		done.err = m.server.call(ctx, "job_undo", map[string]any{"job_id": id}, &done.plan)
		return done
	}
}

// showUndo shows the plan and asks about it.
func (m *model) showUndo(made undoPlanned) tea.Cmd {
	plan := &made.plan
	switch {
	case made.err != nil:
		m.showError(made.err)
		return nil
	case len(plan.Steps) == 0:
		m.message = message{"it changed nothing that can be undone", true}
		return nil
	}
	name := plain("job")
	if j := m.shown().job(made.job); j != nil {
		name = j.title()
	}
	show := m.push(&document{name: "undo of " + name, body: func(_ *state, _ int, _ time.Time) []styled { return plan.lines() }})
	if plan.Approval != "" {
		decide := func(decision string, done plain) tea.Cmd {
			return m.callTool("approval_decide", map[string]any{"approval_id": plan.Approval, "decision": decision}, done)
		}
		m.confirm(plain(fmt.Sprintf("Undo %d of %s?", plan.able(), counted(len(plan.Steps), "change", "changes"))),
			choice{"y", "undo", decide("allow", name+" is being undone")}, choice{"n", "keep", decide("deny", "nothing was changed")})
	}
	return show
}

// able is how many changes can be undone.
func (p *undoPlan) able() (n int) {
	for i := range p.Steps {
		if p.Steps[i].Problem == "" {
			n++
		}
	}
	return n
}

func (p *undoPlan) lines() (all []styled) {
	for _, s := range p.Steps {
		if s.Problem != "" {
			all = append(all, styled{"stays   " + s.Change, yellow}, styled{"        " + s.Problem, faint})
			continue
		}
		all = append(all, styled{"undo    " + s.Change, normal}, styled{"        by " + s.Tool, faint})
	}
	return all
}
