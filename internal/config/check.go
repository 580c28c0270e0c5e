package config

import (
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
)

// check refuses invalid values that the decoder does not detect.
func (c *Config) check() error {
	if err := c.checkChoices(); err != nil {
		return err
	}
	if c.GCPercent < 10 || c.GCPercent > 10_000 {
		return fault.New(fault.Config, "gc_percent: %d is not between 10 and 10000", c.GCPercent).WithHint("400 suits most; less saves memory")
	}
	if err := checkBlobs(c.Blobs); err != nil {
		return err
	}
	if c.MCP.ResultKB < 1 {
		return fault.New(fault.Config, "mcp.result_kb: %d is too small", c.MCP.ResultKB).WithHint("use 1 or more; 32 is usual")
	}
	if c.Scripts.TotalMB < 0 {
		return fault.New(fault.Config, "scripts.total_memory_mb cannot be negative").WithHint("0 means half of what the process may use")
	}
	if c.MCP.ListScripts < 0 {
		return fault.New(fault.Config, "mcp.list_scripts: cannot be negative").WithHint("0 lists none; they are found with search_tools")
	}
	for _, check := range []func() error{
		c.Music.check, c.Search.check, c.Starts.check, c.Sandbox.check, c.Jobs.check, c.Backup.check, c.checkPrefixes, c.Sessions.check, c.checkApprovals, c.checkTrust, c.checkPolicy, c.Audit.check, c.Chat.check, c.checkTLS, c.checkIssuers, c.checkPeople, c.checkHooks, c.checkTools, c.checkUpstreams, c.checkSecrets,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkChoices refuses unknown values of settings with a fixed set of values.
func (c *Config) checkChoices() error {
	for _, s := range []struct {
		key, value, kind string
		words            []string
	}{
		{"local", c.Local, "a choice", []string{string(owner.AsGuest), string(owner.AsOwner), string(owner.AsNone)}},
		{"local_users", c.LocalUsers, "a choice", []string{LocalOwn, LocalAll}},
		{"log.level", c.Log.Level, "a level", []string{"debug", "info", "warn", "error"}},
		{"log.format", c.Log.Format, "a format", []string{"text", "json"}},
		{"scripts.http_get", c.Scripts.HTTPGet, "a kind of effect", []string{"read", "write"}},
		{"scripts.hook_errors", c.Scripts.HookFails, "an outcome", []string{"pass", "refuse"}},
		{"audit.on_failure", c.Audit.Failure, "a reaction", []string{AuditRefuse, AuditContinue}},
		{"telemetry.metrics", c.Telemetry.Metrics, "a choice", []string{MetricsAuto, metricsOn, metricsOff}},
		{"mcp.menu", c.MCP.Menu, "a menu", builtin.Menus},
	} {
		if !slices.Contains(s.words, s.value) {
			return fault.New(fault.Config, "%s: %q is not %s", s.key, s.value, s.kind).WithHint("use %s or %s", strings.Join(s.words[:len(s.words)-1], ", "), s.words[len(s.words)-1])
		}
	}
	return nil
}
