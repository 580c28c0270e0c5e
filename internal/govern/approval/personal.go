package approval

import "github.com/luanette/luanette/internal/store/personal"

// Personal lists the tables with requests and decisions of people. Decisions about requests of others stay; who
// decided them is read from the decisions then.
func Personal() []personal.Table {
	const (
		mine    = `(OWNER(owner) OR asker LIKE '%"user":"' || PERSON || '"%')` // with a key, too, that was deleted since
		decided = `(OWNER(decider) OR party LIKE '%"user":"' || PERSON || '"%')`
	)
	return []personal.Table{
		{Name: "approval_records", Where: "approval IN (SELECT id FROM approvals WHERE " + mine + ")"},
		{Name: "approval_mails", Where: "person = PERSON OR approval IN (SELECT id FROM approvals WHERE " + mine + ")"},
		{Name: "approval_delegations", Where: "person = PERSON OR delegate = PERSON"},
		{Name: "approvals", Where: mine, Hidden: []string{"kept"}},
		{Name: "approvals", Where: "decided_by <> '' AND id IN (SELECT approval FROM approval_decisions WHERE " + decided + ")", Set: "decided_by = ''"},
		{Name: "approval_decisions", Where: decided, Set: `decider = PSEUDONYM, person = CASE WHEN person = PERSON THEN PSEUDONYM ELSE person END, party = '{"id":"' || PSEUDONYM || '"}'`},
		{Name: "approval_decisions", Where: "person = PERSON", Set: "person = PSEUDONYM"},
		{Name: "approval_rules", Where: "maker LIKE '%' || PERSON || '%' OR made_by = FULLNAME", Set: "made_by = PSEUDONYM, maker = ''"},
	}
}
