package audit_test

import (
	"testing"
	"time"

	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func TestConnections(t *testing.T) {
	t.Parallel()
	l := opened(t, dbtest.Open(t, dbtest.SQLite(t)), audit.Options{Node: "a"})
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, c := range []egress.Connection{
		{Host: "api.example", Port: 443, Outcome: egress.Closed, Rule: "*.example:443", Sent: 3, Received: 4, TookMS: 5},
		{Host: "evil.example", Port: 443, Outcome: egress.Refused},
		{Host: "dead.example", Port: 443, Outcome: egress.Failed},
	} {
		c.Server, c.Started = "files", at.Add(time.Duration(i)*time.Second)
		l.RecordConnection(c)
	}
	entries, err := l.Find(t.Context(), audit.Filter{})
	if err != nil || len(entries) != 3 {
		t.Fatal(entries, err)
	}
	dead, evil, good := entries[0], entries[1], entries[2]
	if good.Who != "upstream:files" || good.Action != audit.Connect || good.Subject != "api.example:443" || good.Decision != "allow" || good.Rule != "*.example:443" || good.Size != 7 || good.Took != 5000 || good.Error != "" {
		t.Errorf("%+v", good)
	}
	if evil.Decision != "deny" || evil.Rule != "network" || evil.Error != "permission_denied" || dead.Decision != "allow" || dead.Error != "unavailable" {
		t.Errorf("%+v %+v", evil, dead)
	}
	var none *audit.Log
	none.RecordConnection(egress.Connection{})
}
