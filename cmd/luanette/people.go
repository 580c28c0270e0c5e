package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/luanette/luanette/internal/access/httpauth"
	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/govern/quota"
)

// signIns are the servers at which the user is signed in.
func signIns(proc *process) client.SignIns {
	trusted := config.TrustStore(proc.Env).Path
	if trusted == "" {
		return client.SignIns{}
	}
	return client.SignIns{Path: filepath.Join(filepath.Dir(trusted), "logins.json")}
}

// signInFlags are the flags of login and logout.
type signInFlags struct {
	settingFlags
	URL    string `arg:"" help:"The server's public address, such as https://hub.example."`
	CAFile string `name:"ca-file" type:"path" placeholder:"FILE" help:"PEM file with the certificate authority of the server (default: ca_file of the configuration)."`
}

func (f *signInFlags) access(proc *process) client.Access {
	return client.Access{CAFile: authorityFile(proc, &f.settingFlags, f.CAFile, f.URL)}
}

// signInCommand is `luanette login`.
type signInCommand struct {
	signInFlags
	Org string `placeholder:"ORG" help:"The organisation to act in, for people in several."`
}

// Help is shown by `luanette login --help`.
func (signInCommand) Help() string {
	return `Prints a link and a code. Open the link in any browser, sign in at your provider,
and allow it if the page shows the same code.

Commands with --server URL then act for you, unless a key is given. The tokens are
stored in a file that only you can read, are sent only to that address, and are
renewed automatically. luanette logout URL ends the login.`
}

// Run signs in.
func (c *signInCommand) Run(ctx context.Context, proc *process) error {
	err := signIns(proc).SignIn(ctx, c.URL, c.Org, c.access(proc), func(d client.Device) {
		fmt.Fprintf(proc.Stdout, "open this link, and check that it shows the code %s\n\n  %s\n\n", d.Code, d.URL)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(proc.Stdout, "signed in at %s\n", c.URL)
	return err
}

// signOutCommand is `luanette logout`.
type signOutCommand struct{ signInFlags }

// Run signs out.
func (c *signOutCommand) Run(ctx context.Context, proc *process) error {
	was, err := signIns(proc).SignOut(ctx, c.URL, c.access(proc))
	if err != nil {
		return err
	}
	text := "signed out of %s\n"
	if !was {
		text = "was not signed in at %s\n"
	}
	_, err = fmt.Fprintf(proc.Stdout, text, c.URL)
	return err
}

// whoCommand is `luanette who`.
type whoCommand struct{ runningFlags }

// Help is shown by `luanette who --help`.
func (whoCommand) Help() string {
	return `Shows as whom the server knows you: a person who is signed in (luanette login), a key
(--key or LUANETTE_KEY), or the owner of a server without keys. For people it shows the
organisation, their roles there, the organisations that they can choose (luanette login
--org), and the client that acts for them.`
}

// Run prints who the caller is.
func (c *whoCommand) Run(ctx context.Context, proc *process) error {
	var me httpauth.Me
	if err := c.request(ctx, proc, http.MethodGet, "/api/v1/me", &me); err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, me)
	}
	rows := [][]string{{"id", me.ID}, {"name", me.Name}, {"org", orgsText(me)}, {"roles", cmp.Or(strings.Join(me.Roles, ","), "-")}, {"client", cmp.Or(me.Client, "-")}, {"scopes", joinStrings(me.Scopes)}, {"until", "-"}}
	if me.Expires != nil {
		rows[len(rows)-1][1] = me.Expires.UTC().Format(time.RFC3339)
	}
	return table(proc, []string{"WHAT", "VALUE"}, rows)
}

// orgsText is the organisation in which somebody acts, and their others.
func orgsText(me httpauth.Me) string {
	text, others := cmp.Or(me.Org, "-"), slices.DeleteFunc(slices.Clone(me.Orgs), func(org string) bool { return org == me.Org })
	for i, org := range others {
		others[i] = cmp.Or(org, "none")
	}
	if len(others) > 0 {
		text += " (also in: " + strings.Join(others, ", ") + ")"
	}
	return text
}

// peopleCommand is `luanette people`.
type peopleCommand struct {
	List       peopleListCommand   `cmd:"" help:"List the people who have signed in."`
	Block      personArg           `cmd:"" how:"block" done:"blocked" help:"End everything that acts for a person, at once."`
	Unblock    personArg           `cmd:"" how:"unblock" done:"not blocked any more" help:"Let a person sign in again."`
	Export     peopleExportCommand `cmd:"" help:"Print everything that is stored about a person."`
	Erase      peopleEraseCommand  `cmd:"" help:"Erase a person and everything of theirs."`
	AddTo      peopleAddCommand    `cmd:"" help:"Give a person roles in an organisation."`
	RemoveFrom peopleRemoveCommand `cmd:"" help:"Remove a person from an organisation."`
}

// Help is shown by `luanette people --help`.
func (peopleCommand) Help() string {
	return `People sign in at the identity providers of the configuration (docs/people.md). The
commands need the scope admin at a running server.`
}

// withoutPeople replaces the error of a server that has no such endpoints, since nobody can
// sign in there.
func withoutPeople(path string, err error) error {
	if !strings.HasPrefix(path, "/api/v1/people") || !strings.HasPrefix(err.Error(), "no endpoint") {
		return err
	}
	return fault.New(fault.NotFound, "nobody can sign in at this server").
		WithHint("configure an identity provider as [identity.NAME] in luanette.toml, with public_url: docs/people.md")
}

type peopleListCommand struct{ runningFlags }

// Run lists the people.
func (c *peopleListCommand) Run(ctx context.Context, proc *process) error {
	var list struct{ People []people.Person }
	if err := c.request(ctx, proc, http.MethodGet, "/api/v1/people", &list); err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, list.People)
	}
	return printList(proc, list.People, "nobody has signed in yet", "ID NAME EMAIL STATE ROLES SEEN", func(p people.Person) []string {
		state := "active"
		if !p.Blocked.IsZero() {
			state = "blocked"
		}
		return []string{p.ID, p.Name, cmp.Or(p.Email, "-"), state, rolesText(p.Memberships), p.Seen.Format(time.DateOnly)}
	})
}

// rolesText is the roles of a person, with their organisations.
func rolesText(list []people.Membership) string {
	var all []string
	for _, m := range list {
		text := strings.Join(m.Roles, ",")
		if m.Org != "" {
			text = m.Org + ": " + text
		}
		all = append(all, text)
	}
	return cmp.Or(strings.Join(all, "; "), "-")
}

// personFlags name one person.
type personFlags struct {
	runningFlags
	ID string `arg:"" help:"The person's id, as list shows it."`
}

// personArg is a command that changes one person.
type personArg struct{ personFlags }

// Run sends the change that the command is.
func (f *personArg) Run(ctx context.Context, proc *process, k *kong.Context) error {
	tag := k.Selected().Tag
	return f.change(ctx, proc, http.MethodPost, "/api/v1/people/"+url.PathEscape(f.ID)+"/"+tag.Get("how"), nil, f.ID+" is "+tag.Get("done"))
}

// membershipFlags name an organisation and a person.
type membershipFlags struct {
	runningFlags
	Org string `arg:"" help:"The organisation."`
	ID  string `arg:"" help:"The person's id, as list shows it."`
}

func (f *membershipFlags) path() string { return "/api/v1/people/" + url.PathEscape(f.ID) + "/orgs" }

type peopleAddCommand struct {
	membershipFlags
	Role []string `default:"user" help:"A role there: admin, operator, author, user, viewer, or one of the configuration."`
}

// Run adds a person to an organisation.
func (c *peopleAddCommand) Run(ctx context.Context, proc *process) error {
	return c.change(ctx, proc, http.MethodPost, c.path(), map[string]any{"org": c.Org, "roles": c.Role}, c.ID+" is in "+c.Org)
}

type peopleRemoveCommand struct{ membershipFlags }

// Run removes a person from an organisation.
func (c *peopleRemoveCommand) Run(ctx context.Context, proc *process) error {
	return c.change(ctx, proc, http.MethodDelete, c.path()+"/"+url.PathEscape(c.Org), nil, c.ID+" is not in "+c.Org)
}

// myself stands for the person who is signed in.
const myself = "me"

// dataPath is the path of what is stored about a person.
func (f *personFlags) dataPath() string {
	if f.ID == myself {
		return "/api/v1/me"
	}
	return "/api/v1/people/" + url.PathEscape(f.ID)
}

type peopleExportCommand struct{ personFlags }

// Help is shown by `luanette people export --help`.
func (peopleExportCommand) Help() string {
	return `Prints everything that the server stores about a person as JSON lines, without tokens and
other secrets. ID is a person's id, or me for yourself, which needs no scope.`
}

// Run prints the export.
func (c *peopleExportCommand) Run(ctx context.Context, proc *process) error {
	address, err := c.address(ctx, proc, &c.settingFlags)
	if err != nil {
		return err
	}
	raw, err := client.Request(ctx, address, c.access(ctx, proc, &c.settingFlags, address), http.MethodGet, c.dataPath()+"/export", nil)
	if err != nil {
		return err
	}
	_, err = proc.Stdout.Write(raw)
	return err
}

type peopleEraseCommand struct {
	personFlags
	Yes bool `short:"y" help:"Do not ask before."`
}

// Help is shown by `luanette people erase --help`.
func (peopleEraseCommand) Help() string {
	return `Erases a person and everything of theirs: jobs, schedules, sessions, conversations, values,
results, logins, keys, and what they allowed clients. It cannot be undone. The audit log
keeps what was done, under a pseudonym. ID is a person's id, or me for yourself.`
}

// Run erases a person.
func (c *peopleEraseCommand) Run(ctx context.Context, proc *process) error {
	if !c.Yes {
		person := newPrompter(proc)
		if person == nil {
			return fault.New(fault.InvalidParams, "nothing was erased").WithHint("add --yes if %s and everything of theirs shall be erased", c.ID)
		}
		if agreed, err := person.yes("Erase " + c.ID + " and everything of theirs, for ever?"); err != nil || !agreed {
			return err
		}
	}
	var answer struct{ ID, Pseudonym string }
	if err := c.request(ctx, proc, http.MethodDelete, c.dataPath(), &answer); err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, map[string]string{"id": answer.ID, "pseudonym": answer.Pseudonym})
	}
	_, err := fmt.Fprintf(proc.Stdout, "%s is erased; the audit log says %s\n", answer.ID, answer.Pseudonym)
	return err
}

type orgCommand struct {
	Usage orgUsageCommand `cmd:"" help:"Show what an organisation has used of its quotas today."`
}

type orgUsageCommand struct {
	runningFlags
	Org string `arg:"" help:"The organisation."`
}

// Run prints the use of an organisation's quotas.
func (c *orgUsageCommand) Run(ctx context.Context, proc *process) error {
	var u quota.OrgUsage
	if err := c.request(ctx, proc, http.MethodGet, "/api/v1/orgs/"+url.PathEscape(c.Org)+"/usage", &u); err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, u)
	}
	var rows [][]string
	for _, q := range u.Quotas() {
		renews := "-"
		if !q.Renews.IsZero() {
			renews = q.Renews.Format(time.RFC3339)
		}
		rows = append(rows, []string{q.Name, decimals(q.Used.Used), decimals(q.Limit), renews})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(proc.Stdout, "%s has no quotas\n", c.Org)
		return err
	}
	return table(proc, []string{"QUOTA", "USED", "LIMIT", "RENEWS"}, rows)
}

// decimals writes a number with at most three decimals.
func decimals(n float64) string { return strconv.FormatFloat(math.Round(n*1000)/1000, 'f', -1, 64) }
