package approval

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with requests and decisions of people. Decisions about requests of others stay.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "approval_records", Where: "approval IN (SELECT id FROM approvals WHERE OWNER(owner))"},
		{Name: "approval_mails", Where: "person = PERSON OR approval IN (SELECT id FROM approvals WHERE OWNER(owner))"},
		{Name: "approval_delegations", Where: "person = PERSON OR delegate = PERSON"},
		{Name: "approvals", Where: "OWNER(owner)", Hidden: []string{"kept"}},
		{Name: "approvals", Where: "id IN (SELECT approval FROM approval_decisions WHERE OWNER(decider)) AND decided_by = FULLNAME", Set: "decided_by = PSEUDONYM"},
		{Name: "approval_decisions", Where: "OWNER(decider)", Set: "decider = PSEUDONYM, person = PSEUDONYM, party = '{}'"},
		{Name: "approval_rules", Where: "maker LIKE '%:' || PERSON || '%' OR made_by = FULLNAME", Set: "made_by = PSEUDONYM, maker = ''"},
	}
}
