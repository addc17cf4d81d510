package policies

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/schemadiff"
)

// load reads an organisation's files; names are below the folder "org".
func load(t *testing.T, files map[string]string) *Policies {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return Load(fsys, "org")
}

var phone = schemadiff.Proposal{Add: []string{"phone text"}}

// decide asks about a change of a table of a source.
func decide(t *testing.T, p *Policies, source string, proposal schemadiff.Proposal) catalog.Decision {
	t.Helper()
	table := &catalog.Table{
		Source: source, Name: catalog.TableName{Schema: "public", Name: "orders"}, Owner: "team-a", PrimaryKey: []string{"id"}, Current: true, History: true, Tier: catalog.Tier1m,
		PII: map[string]catalog.Protection{"email": catalog.Tokenize},
	}
	changes, err := proposal.Changes(table)
	require.NoError(t, err)
	d, err := p.Decide(t.Context(), &catalog.Source{Name: source, Kind: catalog.Postgres, Capture: catalog.Direct}, table, changes)
	require.NoError(t, err)
	return d
}

// findings asks about the configuration of a table of a source.
func findings(t *testing.T, p *Policies, source string, change func(*catalog.Table)) ([]string, error) {
	t.Helper()
	table := &catalog.Table{Source: source, Name: catalog.TableName{Schema: "public", Name: "orders"}, Owner: "team-a", PrimaryKey: []string{"id"}, Tier: catalog.Tier1m}
	if change != nil {
		change(table)
	}
	list, err := p.CheckConfig(t.Context(), &catalog.Source{Name: source, Kind: catalog.Postgres, Capture: catalog.Direct}, table)
	var out []string
	for _, f := range list {
		out = append(out, f.Field+": "+f.Rule)
	}
	return out, err
}

const phoneIsFine = `package organisation.schema

overrides contains {
	"verdict": "evolve",
	"rule": "phones_are_test_data",
	"reason": "the shop's phones are made up",
} if {
	input.source.name == "shop"
	input.change.column == "phone"
}
`

func TestOverrideReplacesTheVerdict(t *testing.T) {
	t.Parallel()
	require.Equal(t, catalog.Quarantine, decide(t, BuiltIn(), "shop", phone).Verdict)
	p := load(t, map[string]string{"phone.rego": phoneIsFine})
	require.Empty(t, p.Problems())
	j := decide(t, p, "shop", phone).Judgements[0]
	require.Equal(t, catalog.Evolve, j.Verdict)
	require.Equal(t, "phones_are_test_data", j.Rule)
	require.Equal(t, "the shop's phones are made up", j.Reason)
	require.Equal(t, "org/phone.rego:3:1", j.At)
	require.True(t, j.Override)
	var all []string
	for _, r := range j.Rulings {
		file, line, _ := Place(r.At)
		require.Positive(t, line)
		all = append(all, r.Rule+" "+file)
	}
	require.Equal(t, []string{"phones_are_test_data org/phone.rego", "pii_name lakeweir/schema.rego", "column_added lakeweir/schema.rego"}, all, "what is overridden is told too")
	require.Equal(t, catalog.Quarantine, decide(t, p, "crm", phone).Verdict, "the override is about the shop")
}

func TestOfSeveralVerdictsTheStrictestCounts(t *testing.T) {
	t.Parallel()
	add := `package organisation.schema

verdicts contains {"verdict": "hold", "rule": "ask_us", "reason": "new columns are ours to see", "warnings": ["ask team-data"], "reread": true} if input.change.kind == "column_added"

verdicts contains {"verdict": "evolve", "rule": "fine", "reason": "fine"} if input.change.kind == "column_narrowed"
`
	p := load(t, map[string]string{"add.rego": add})
	d := decide(t, p, "shop", schemadiff.Proposal{Add: []string{"note text"}})
	require.Equal(t, catalog.Hold, d.Verdict)
	require.Equal(t, "ask_us", d.Judgements[0].Rule)
	require.Equal(t, []string{"ask team-data"}, d.Judgements[0].Warnings)
	require.True(t, d.Reread)
	require.Equal(t, catalog.Quarantine, decide(t, p, "shop", schemadiff.Proposal{Retype: map[string]string{"n": "bigint->integer"}}).Verdict, "an added verdict does not soften")
	p = load(t, map[string]string{"add.rego": add, "phone.rego": phoneIsFine, "b.rego": strings.ReplaceAll(phoneIsFine, `"evolve"`, `"hold"`)})
	require.Equal(t, catalog.Hold, decide(t, p, "shop", phone).Verdict, "of two overrides the stricter counts")
}

func TestSettingsOfTheOrganisation(t *testing.T) {
	t.Parallel()
	p := load(t, map[string]string{"settings.rego": `package organisation.settings

tiers := {"1min", "1h"}
owner_pattern := ` + "`^team-[a-z]+$`" + `
table_pattern := ` + "`^[a-z_]+$`" + `
pii_names contains "kunden_nummer"
pii_exempt contains "orders.phone"
`})
	require.Empty(t, p.Problems())
	require.Equal(t, catalog.Evolve, decide(t, p, "shop", phone).Verdict)
	require.Equal(t, catalog.Quarantine, decide(t, p, "shop", schemadiff.Proposal{Add: []string{"alte_kundenNummer text"}}).Verdict)
	got, err := findings(t, p, "shop", nil)
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = findings(t, p, "shop", func(t *catalog.Table) { t.Tier, t.Owner, t.Name.Name = catalog.Realtime, "bob", "Orders" })
	require.NoError(t, err)
	require.Equal(t, []string{"freshness_tier: tier_allowed", "owner: owner_pattern", "table: table_pattern"}, got)
}

func TestFindingsAndWaiversOfTheOrganisation(t *testing.T) {
	t.Parallel()
	p := load(t, map[string]string{
		"config.rego": `package organisation.config

findings contains {"rule": "history_needed", "field": "scd", "message": "payments need history"} if {
	input.table.name == "payments"
	not 2 in input.table.scd
}

waivers contains {"rule": "pii_in_clear", "reason": "subscribers are public"} if input.table.name == "subscribers"
`,
		"shop.rego": `package organisation.source.shop.config

findings contains {"rule": "shop_only", "field": "owner", "message": "the shop's tables are ours"} if input.table.owner != "team-shop"
`,
	})
	require.Empty(t, p.Problems())
	for _, c := range []struct {
		source, table string
		want          []string
	}{
		{"crm", "payments", []string{"primary_key[0]: pii_in_clear", "scd: history_needed"}},
		{"crm", "subscribers", nil},
		{"shop", "subscribers", []string{"owner: shop_only"}},
	} {
		got, err := findings(t, p, c.source, func(t *catalog.Table) { t.Name.Name, t.PrimaryKey = c.table, []string{"email"} })
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%s/%s", c.source, c.table)
	}
}

// TestABrokenPolicyStopsOnlyWhatItJudges: what is asked of it fails closed with its
// place; all else is answered as if it were not there.
func TestABrokenPolicyStopsOnlyWhatItJudges(t *testing.T) {
	t.Parallel()
	const shop, crm, config = "schema changes of shop", "schema changes of crm", "configurations"
	for name, c := range map[string]struct {
		files map[string]string
		at    string // the place of the error
		code  catalog.Code
		says  string
		stops []string
	}{
		"not Rego": {
			map[string]string{"a.rego": "package organisation.schema\n\nverdicts contains {\"verdict\": if\n"},
			"org/a.rego:3:31", catalog.CodePolicySyntax, "",
			[]string{shop, crm},
		},
		"not Rego, and nobody knows what for": {
			map[string]string{"a.rego": "pakage x\n"}, "org/a.rego:1:1", catalog.CodePolicySyntax, "", []string{shop, crm, config},
		},
		"Rego of before": {
			map[string]string{"a.rego": "package organisation.schema\n\nverdicts[v] { v := 1 }\n"},
			"org/a.rego:3:1", catalog.CodePolicySyntax, "`if` keyword is required",
			[]string{shop, crm},
		},
		"empty": {map[string]string{"a.rego": "# nothing yet\n"}, "org/a.rego:1:1", catalog.CodePolicySyntax, "", []string{shop, crm, config}},
		"a field that the input does not have": {
			map[string]string{"a.rego": "package organisation.schema\n\nverdicts contains {} if {\n\tinput.chnage.kind == \"x\"\n}\n"},
			"org/a.rego:4:2", catalog.CodePolicyCompile, "undefined ref: input.chnage",
			[]string{shop, crm},
		},
		"a variable that is not there": {
			map[string]string{"a.rego": "package organisation.schema\n\nverdicts contains {} if x == 1\n"},
			"org/a.rego:3:25", catalog.CodePolicyCompile, "var x is unsafe",
			[]string{shop, crm},
		},
		"the network": {
			map[string]string{"a.rego": "package organisation.schema\n\nverdicts contains {} if http.send({\"method\": \"get\", \"url\": \"http://127.0.0.1\"})\n"},
			"org/a.rego:3:25", catalog.CodePolicyCompile, "undefined function http.send",
			[]string{shop, crm},
		},
		"of one source": {
			map[string]string{"a.rego": "package organisation.source.shop.schema\n\nverdicts contains {} if nope(1)\n"},
			"org/a.rego:3:25", catalog.CodePolicyCompile, "undefined function nope",
			[]string{shop},
		},
		"about configurations": {
			map[string]string{"a.rego": "package organisation.config\n\nfindings contains {} if nope(1)\n"},
			"org/a.rego:3:25", catalog.CodePolicyCompile, "undefined function nope",
			[]string{config},
		},
		"a library that one source's rules look into": {
			map[string]string{
				"lib.rego":  "package organisation.lib.names\n\nodd if nope(1)\n",
				"shop.rego": "package organisation.source.shop.schema\n\nimport data.organisation.lib.names\n\nverdicts contains {\"verdict\": \"hold\", \"rule\": \"odd\", \"reason\": \"odd\"} if names.odd\n",
			},
			"org/lib.rego:3:8", catalog.CodePolicyCompile, "undefined function nope",
			[]string{shop},
		},
		"a library that nobody looks into": {
			map[string]string{"lib.rego": "package organisation.lib.names\n\nodd if nope(1)\n"},
			"org/lib.rego:3:8", catalog.CodePolicyCompile, "undefined function nope", nil,
		},
		"settings": {
			map[string]string{"a.rego": "package organisation.settings\n\ntiers := nope(1)\n"},
			"org/a.rego:3:10", catalog.CodePolicyCompile, "undefined function nope",
			[]string{shop, crm, config},
		},
		"one file of two in a package": {
			map[string]string{"a.rego": phoneIsFine, "b.rego": "package organisation.schema\n\nodd if nope(1)\n"},
			"org/b.rego:3:8", catalog.CodePolicyCompile, "undefined function nope",
			[]string{shop, crm},
		},
		"a package that is ours": {
			map[string]string{"a.rego": "package lakeweir.schema\n\nverdicts contains {} if true\n"},
			"org/a.rego:1:1", catalog.CodePolicyContract, "Lakeweir's own",
			[]string{shop, crm, config},
		},
		"a package that nobody reads": {
			map[string]string{"a.rego": "package organization.schema\n\nverdicts contains {} if true\n"},
			"org/a.rego:1:1", catalog.CodePolicyContract, "nobody reads the package organization.schema",
			[]string{shop, crm, config},
		},
		"a rule that nobody reads": {
			map[string]string{"a.rego": "package organisation.schema\n\nverdicts contains {} if false\n\noverride contains {} if true\n"},
			"org/a.rego:5:1", catalog.CodePolicyContract, "nobody reads override",
			[]string{shop, crm},
		},
		"a rule that is no set": {
			map[string]string{"a.rego": "package organisation.schema\n\noverrides := {\"verdict\": \"evolve\"} if true\n"},
			"org/a.rego:3:1", catalog.CodePolicyContract, "overrides is a set of answers",
			[]string{shop, crm},
		},
		"a package without an answer": {
			map[string]string{"a.rego": "package organisation.schema\n\nfine if true\n"},
			"org/a.rego:1:1", catalog.CodePolicyContract, "the package answers nothing",
			[]string{shop, crm},
		},
		"a setting that there is not": {
			map[string]string{"a.rego": "package organisation.settings\n\npii_name contains \"x\"\n"},
			"org/a.rego:3:1", catalog.CodePolicyContract, `there is no setting "pii_name"`,
			[]string{shop, crm, config},
		},
		"rules that contradict each other, at run time": {
			map[string]string{"a.rego": "package organisation.source.shop.schema\n\nv := \"hold\" if input.change.kind != \"x\"\n\nv := \"evolve\" if input.change.column != \"x\"\n\nverdicts contains {\"verdict\": v, \"rule\": \"r\", \"reason\": \"r\"} if true\n"},
			"org/a.rego:5:1", catalog.CodePolicyFailed, `"hold" at org/a.rego:3`,
			[]string{shop},
		},
		"a function that fails, at run time": {
			map[string]string{"a.rego": "package organisation.schema\n\nverdicts contains {\"verdict\": \"hold\", \"rule\": \"r\", \"reason\": \"r\"} if {\n\tto_number(input.source.name) > 1\n}\n"},
			"org/a.rego:4:2", catalog.CodePolicyFailed, "to_number",
			[]string{shop, crm},
		},
		"a verdict that there is not": {
			map[string]string{"a.rego": "package organisation.schema\n\nverdicts contains {\"verdict\": \"evolv\", \"rule\": \"r\", \"reason\": \"r\"} if input.source.name == \"shop\"\n"},
			"org/a.rego:3:1", catalog.CodePolicyFailed, `verdict is "evolv"`,
			[]string{shop},
		},
		"a reason that is missing": {
			map[string]string{"a.rego": "package organisation.schema\n\noverrides contains {\"verdict\": \"evolve\", \"rule\": \"r\"} if input.source.name == \"shop\"\n"},
			"org/a.rego:3:1", catalog.CodePolicyFailed, "no reason",
			[]string{shop},
		},
		"a key that nobody knows": {
			map[string]string{"a.rego": "package organisation.schema\n\nverdicts contains {\"verdict\": \"hold\", \"rule\": \"r\", \"reason\": \"r\", \"re_read\": true} if input.source.name == \"shop\"\n"},
			"org/a.rego:3:1", catalog.CodePolicyFailed, `unknown field "re_read"`,
			[]string{shop},
		},
		"an answer that is a text": {
			map[string]string{"a.rego": "package organisation.schema\n\nverdicts contains \"hold\" if input.source.name == \"shop\"\n"},
			"org/a.rego:3:1", catalog.CodePolicyFailed, "cannot be string",
			[]string{shop},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := load(t, c.files)
			if c.code == catalog.CodePolicyFailed {
				require.Empty(t, p.Problems(), "it shows when it is asked")
			} else {
				require.NotEmpty(t, p.Problems())
				requireError(t, p.Problems()[0], c.at, c.code, c.says)
			}
			var stopped []string
			for what, source := range map[string]string{shop: "shop", crm: "crm"} {
				d := decide(t, p, source, schemadiff.Proposal{Add: []string{"note text"}})
				if f := d.Judgements[0].Failure; f != nil {
					require.Equal(t, catalog.Quarantine, d.Verdict)
					requireError(t, &catalog.Error{Code: f.Code, At: f.At, Message: f.Message}, c.at, c.code, c.says)
					stopped = append(stopped, what)
				} else {
					require.Equal(t, catalog.Evolve, d.Verdict)
				}
			}
			if _, err := findings(t, p, "shop", nil); err != nil {
				require.Equal(t, c.code, catalog.Public(err).Code)
				stopped = append(stopped, config)
			}
			require.ElementsMatch(t, c.stops, stopped)
		})
	}
}

func requireError(t *testing.T, e *catalog.Error, at string, code catalog.Code, says string) {
	t.Helper()
	require.Equal(t, at, e.At, e.Message)
	require.Equal(t, code, e.Code)
	require.Contains(t, e.Message, says)
}

// endless takes longer than anybody waits.
const endless = `package organisation.source.shop.schema

many := [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]

verdicts contains {"verdict": "hold", "rule": "r", "reason": "r"} if {
	some a in many
	some b in many
	some c in many
	some d in many
	some e in many
	some f in many
	some g in many
	some h in many
	((((((a + b) + c) + d) + e) + f) + g) + h < 0
}
`

func TestAnEvaluationThatTakesTooLongFailsClosed(t *testing.T) {
	t.Parallel()
	p := load(t, map[string]string{"a.rego": endless}).WithLimit(50 * time.Millisecond)
	d := decide(t, p, "shop", phone)
	require.Equal(t, catalog.Quarantine, d.Verdict)
	require.Equal(t, "no answer within 50ms", d.Judgements[0].Failure.Message)
	require.Equal(t, "org/a.rego:1:1", d.Judgements[0].Failure.At)
	require.Equal(t, catalog.Evolve, decide(t, p, "crm", schemadiff.Proposal{Add: []string{"note text"}}).Verdict)
}

// TestACallerThatGoesIsNoVerdict: a worker that is stopped must not quarantine.
func TestACallerThatGoesIsNoVerdict(t *testing.T) {
	t.Parallel()
	p := load(t, map[string]string{"a.rego": endless}).WithLimit(time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	table := &catalog.Table{Source: "shop", PrimaryKey: []string{"id"}}
	changes, err := phone.Changes(table)
	require.NoError(t, err)
	_, err = p.Decide(ctx, &catalog.Source{Name: "shop"}, table, changes)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestACopyOfOurFilesChangesNothing(t *testing.T) {
	t.Parallel()
	all := map[string]string{}
	for _, name := range []string{"schema.rego", "pii.rego", "config.rego", "pii_test.rego"} {
		text, err := files.ReadFile("lakeweir/" + name)
		require.NoError(t, err)
		all["lakeweir/"+name] = string(text)
	}
	p := load(t, all)
	require.Empty(t, p.Problems())
	require.Empty(t, p.Files())
	changed := maps.Clone(all)
	changed["lakeweir/schema.rego"] += "\n# mine\n"
	require.Equal(t, catalog.CodePolicyContract, load(t, changed).Problems()[0].Code)
}

func TestFilesThatCannotBeReadFailClosed(t *testing.T) {
	t.Parallel()
	p := LoadDir("testdata/no such folder")
	require.Equal(t, catalog.CodePolicyFile, p.Problems()[0].Code)
	require.Equal(t, catalog.Quarantine, decide(t, p, "shop", schemadiff.Proposal{Add: []string{"note text"}}).Verdict)
	p = load(t, map[string]string{"a.rego": "package organisation.schema\n" + strings.Repeat("#", maxFileBytes)})
	require.Equal(t, catalog.CodePolicyFile, p.Problems()[0].Code)
	require.Equal(t, catalog.Quarantine, decide(t, p, "shop", schemadiff.Proposal{Add: []string{"note text"}}).Verdict)
}

// TestTestsDoNotJudge: a test that is broken keeps nobody from judging, and is told.
func TestTestsDoNotJudge(t *testing.T) {
	t.Parallel()
	p := load(t, map[string]string{"a_test.rego": "package organisation.schema_test\n\ntest_x if nope(1)\n"})
	require.Empty(t, p.Problems())
	require.Equal(t, catalog.Evolve, decide(t, p, "shop", schemadiff.Proposal{Add: []string{"note text"}}).Verdict)
	require.Len(t, p.Check(), 1)
	requireError(t, p.Check()[0], "org/a_test.rego:3:11", catalog.CodePolicyCompile, "undefined function nope")
}

func TestTestsInRegoRunAsWritten(t *testing.T) {
	t.Parallel()
	p := load(t, map[string]string{"phone.rego": phoneIsFine, "phone_test.rego": `package organisation.schema_test

import data.organisation.schema

test_phone if {
	some v in schema.overrides with input as {"source": {"name": "shop"}, "change": {"column": "phone"}}
	v.verdict == "evolve"
}

test_false if 1 == 2

test_fails if to_number("x") == 1
`})
	results, err := p.RunTests(t.Context())
	require.NoError(t, err)
	require.Len(t, results, 3)
	require.Equal(t, TestResult{Name: "organisation.schema_test.test_phone", At: "org/phone_test.rego:5:1"}, results[0])
	require.Equal(t, "undefined: a condition of the test does not hold", results[1].Failure)
	require.Contains(t, results[2].Failure, "to_number")
}
