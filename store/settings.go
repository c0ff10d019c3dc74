package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Setting describes one setting of a shard. The table Settings drives validation and the commands
// that show and edit them.
type Setting struct {
	Name    string
	Allowed string // the range, as an error message says it
	Rule    string
	Doc     string
	// read takes the value from JSON, if it can be one.
	read func(*ShardSettings, json.RawMessage) bool
	// value is what Encode writes.
	value func(ShardSettings) any
	copy  func(to *ShardSettings, from ShardSettings)
	ok    func(ShardSettings) bool
	text  bool // in JSON
}

// Settings is the table of all settings of a shard.
var Settings = []Setting{
	timeSetting("provider_poll", "DET-12", "How often providers list their machines.", time.Second, 10*time.Minute,
		func(s *ShardSettings) *Duration { return &s.ProviderPoll }),
	{
		Name: "create_rate", Allowed: "0.01 to 1000", Rule: "REC-3", Doc: "How many machines are created in a second.",
		read:  func(s *ShardSettings, raw json.RawMessage) bool { return json.Unmarshal(raw, &s.CreateRate) == nil },
		value: func(s ShardSettings) any { return s.CreateRate },
		copy:  func(to *ShardSettings, from ShardSettings) { to.CreateRate = from.CreateRate },
		ok:    func(s ShardSettings) bool { return s.CreateRate >= 0.01 && s.CreateRate <= 1000 },
	},
	{
		Name: "create_burst", Allowed: "1 to 1000", Rule: "REC-3",
		Doc:   "How many machines are created at once after a pause.",
		read:  func(s *ShardSettings, raw json.RawMessage) bool { return json.Unmarshal(raw, &s.CreateBurst) == nil },
		value: func(s ShardSettings) any { return s.CreateBurst },
		copy:  func(to *ShardSettings, from ShardSettings) { to.CreateBurst = from.CreateBurst },
		ok:    func(s ShardSettings) bool { return s.CreateBurst >= 1 && s.CreateBurst <= 1000 },
	},
	timeSetting("orphan_grace", "REC-8", "How long a machine without a record is left alone before it is removed.",
		time.Second, 30*24*time.Hour,
		func(s *ShardSettings) *Duration { return &s.OrphanGrace }),
	timeSetting("reconnect_min", "DET-14",
		"The first pause of an agent that cannot reach a replica; at most reconnect_max.", 100*time.Millisecond,
		time.Minute,
		func(s *ShardSettings) *Duration { return &s.ReconnectMin }),
	timeSetting("reconnect_max", "DET-14", "Its longest pause; nothing is judged lost for so long after a disturbance.",
		time.Second, 5*time.Minute,
		func(s *ShardSettings) *Duration { return &s.ReconnectMax }),
	timeSetting("events_kept", "", "How long entries of the journal are kept.", time.Minute, 365*24*time.Hour,
		func(s *ShardSettings) *Duration { return &s.EventsKept }),
	timeSetting("days_kept", "DAY-5", "How long the summaries of days are kept that the leader makes of the journal.",
		24*time.Hour, 10*365*24*time.Hour,
		func(s *ShardSettings) *Duration { return &s.DaysKept }),
	orOff(timeSetting("eligible_age", "EXP-1",
		"Where a group does not say: older instances are replaced while all are healthy; 0: off; at most forced_age.",
		time.Minute, 10*365*24*time.Hour,
		func(s *ShardSettings) *Duration { return &s.EligibleAge })),
	orOff(timeSetting("forced_age", "EXP-1",
		"Where a group does not say: older instances are replaced in any case; 0: off.", time.Minute,
		10*365*24*time.Hour,
		func(s *ShardSettings) *Duration { return &s.ForcedAge })),
	timeSetting("certificate", "SEC-3", "How long an agent's certificate lasts; it is renewed after a third of that.",
		5*time.Second, 365*24*time.Hour,
		func(s *ShardSettings) *Duration { return &s.Certificate }),
	orOff(timeSetting("compact_after", "",
		"How old etcd's history becomes before the leader compacts it, unless etcd does so itself; 0: never, but "+
			"1h under leasehold server and dev.", time.Minute,
		365*24*time.Hour,
		func(s *ShardSettings) *Duration {
			own := *DefaultShardSettings().CompactAfter
			if s.CompactAfter != nil {
				own = *s.CompactAfter
			}
			s.CompactAfter = &own // copies of the settings share what the pointer shows
			return s.CompactAfter
		})),
	{
		Name: "limit_instances", Allowed: fmt.Sprintf("0 to %d", MaxLimit), Rule: "CAP-1",
		Doc: "How many instances may exist or be intended in the shard, those that are being deleted " +
			"included; 0: no limit.",
		read:  func(s *ShardSettings, raw json.RawMessage) bool { return json.Unmarshal(raw, &s.LimitInstances) == nil },
		value: func(s ShardSettings) any { return s.LimitInstances },
		copy:  func(to *ShardSettings, from ShardSettings) { to.LimitInstances = from.LimitInstances },
		ok:    func(s ShardSettings) bool { return s.LimitInstances >= 0 && s.LimitInstances <= MaxLimit },
	},
	limitsSetting("limit_by_provider", "ec2:100,lxd:20", "The same for the instances of a provider.",
		func(s *ShardSettings) *Limits { return &s.LimitByProvider }),
	limitsSetting("limit_by_label", "team=shop:50", "The same for the instances of all groups that have a label.",
		func(s *ShardSettings) *Limits { return &s.LimitByLabel }),
	budgetGroups(),
}

// budgetGroups returns the setting for the budgets that groups share.
func budgetGroups() Setting {
	s := limitsSetting("budget_groups", "shop:1",
		"How many instances may be down at once in all groups together that name the same budget_group, for another "+
			"one to be taken down; 1 for those that are not in the list.",
		func(s *ShardSettings) *Limits { return &s.BudgetGroups })
	s.Rule = "REC-18"
	return s
}

// BudgetOf returns how many instances may be down in all groups that share a budget.
func (s ShardSettings) BudgetOf(group string) int {
	if most, set := s.BudgetGroups.ByName()[group]; set {
		return most
	}
	return 1
}

func limitsSetting(name, example, doc string, field func(*ShardSettings) *Limits) Setting {
	return Setting{
		Name: name, Allowed: fmt.Sprintf("none, or names and numbers of 0 to %d like %s", MaxLimit, example),
		Rule: "CAP-1", Doc: doc, text: true,
		read:  func(s *ShardSettings, raw json.RawMessage) bool { return json.Unmarshal(raw, field(s)) == nil },
		value: func(s ShardSettings) any { return *field(&s) },
		copy:  func(to *ShardSettings, from ShardSettings) { *field(to) = *field(&from) },
		ok:    func(ShardSettings) bool { return true },
	}
}

func timeSetting(name, rule, doc string, low, high time.Duration, field func(*ShardSettings) *Duration) Setting {
	get := func(s ShardSettings) Duration { return *field(&s) }
	return Setting{
		Name: name, Allowed: fmt.Sprintf("%s to %s", low, high), Rule: rule, Doc: doc, text: true,
		read:  func(s *ShardSettings, raw json.RawMessage) bool { return json.Unmarshal(raw, field(s)) == nil },
		value: func(s ShardSettings) any { return get(s) },
		copy:  func(to *ShardSettings, from ShardSettings) { *field(to) = get(from) },
		ok:    func(s ShardSettings) bool { d := get(s).D(); return d >= low && d <= high },
	}
}

// orOff returns a setting that 0 turns off.
func orOff(s Setting) Setting {
	inRange := s.ok
	s.Allowed = "0s, or " + s.Allowed
	s.ok = func(all ShardSettings) bool { return s.value(all) == Duration(0) || inRange(all) }
	return s
}

// Value returns the setting as text.
func (s Setting) Value(all ShardSettings) string { return fmt.Sprint(s.value(all)) }

// Default returns what the setting is unless the shard says otherwise.
func (s Setting) Default() string { return s.Value(DefaultShardSettings()) }

// settingNamed returns the setting with this name.
func settingNamed(name string) (Setting, bool) {
	i := slices.IndexFunc(Settings, func(one Setting) bool { return one.Name == name })
	if i < 0 {
		return Setting{}, false
	}
	return Settings[i], true
}

// Value returns the setting of this name as text; "" if there is none.
func (s ShardSettings) Value(name string) string {
	one, known := settingNamed(name)
	if !known {
		return ""
	}
	return one.Value(s)
}

// pairs are settings of which the first must not be greater than the second.
var pairs = []struct {
	low, high string
	ok        func(ShardSettings) bool
}{
	{"reconnect_min", "reconnect_max", func(s ShardSettings) bool { return s.ReconnectMin <= s.ReconnectMax }},
	{"eligible_age", "forced_age", func(s ShardSettings) bool {
		return s.EligibleAge <= 0 || s.ForcedAge <= 0 || s.EligibleAge <= s.ForcedAge
	}},
}

// Wrong checks every setting, by itself and beside others (REC-20), and returns an error for each
// that is wrong.
func (s ShardSettings) Wrong() []*FieldError {
	var wrong []*FieldError
	for _, one := range Settings {
		if !one.ok(s) {
			wrong = append(wrong, &FieldError{
				Path: one.Name, Value: one.Value(s), Allowed: one.Allowed,
				Rule: one.Rule,
			})
		}
	}
	for _, p := range pairs {
		if !p.ok(s) {
			low, _ := settingNamed(p.low)
			high, _ := settingNamed(p.high)
			wrong = append(wrong, tooHigh(low, s, high))
		}
	}
	return wrong
}

func tooHigh(low Setting, s ShardSettings, high Setting) *FieldError {
	return &FieldError{
		Path: low.Name, Value: low.Value(s), Rule: low.Rule,
		Allowed: fmt.Sprintf("%s, and at most %s (%s)", low.Allowed, high.Name, high.Value(s)),
	}
}

func tooLow(high Setting, s ShardSettings, low Setting) *FieldError {
	return &FieldError{
		Path: high.Name, Value: high.Value(s), Rule: high.Rule,
		Allowed: fmt.Sprintf("%s, and at least %s (%s)", high.Allowed, low.Name, low.Value(s)),
	}
}

// Set changes one setting to what a person wrote; "default" is its default. Whether it fits beside
// the others Wrong says.
func (s *ShardSettings) Set(name, value string) error {
	one, known := settingNamed(name)
	if !known {
		var names []string
		for _, other := range Settings {
			names = append(names, other.Name)
		}
		return &FieldError{
			Path: name, Value: "unknown setting",
			Allowed: "one of those that leasehold config show lists", Name: name, Known: names,
		}
	}
	next := *s
	next.raw = maps.Clone(s.raw)
	delete(next.raw, name)
	next.Refused = slices.DeleteFunc(slices.Clone(s.Refused), func(e FieldError) bool { return e.Path == name })
	raw := json.RawMessage(value)
	if one.text {
		raw = json.RawMessage(strconv.Quote(value))
	}
	if value == "default" {
		one.copy(&next, DefaultShardSettings())
	} else if !one.read(&next, raw) || !one.ok(next) {
		return &FieldError{Path: name, Value: value, Allowed: one.Allowed, Rule: one.Rule}
	}
	*s = next
	return nil
}

// After returns the settings in force when these replace the last ones: refused values stay as they
// were (REC-20).
func (s ShardSettings) After(last ShardSettings) ShardSettings {
	if len(s.Refused) == 0 {
		return s
	}
	s.Refused, s.raw = slices.Clone(s.Refused), maps.Clone(s.raw)
	for _, e := range s.Refused {
		if one, known := settingNamed(e.Path); known {
			one.copy(&s, last)
		}
	}
	s.refusePairs(last)
	return s
}

// refusePairs refuses what does not fit beside another setting: both stay as they were, since those
// fit.
func (s *ShardSettings) refusePairs(last ShardSettings) {
	for _, p := range pairs {
		if p.ok(*s) {
			continue
		}
		low, _ := settingNamed(p.low)
		high, _ := settingNamed(p.high)
		was := *s
		for _, one := range []struct {
			Setting
			why *FieldError
		}{{low, tooHigh(low, was, high)}, {high, tooLow(high, was, low)}} {
			if _, refused := s.raw[one.Name]; !refused {
				s.refuse(one.Setting, Encode(one.value(was)), *one.why)
			}
			one.copy(s, last)
		}
	}
}

func (s *ShardSettings) refuse(one Setting, raw json.RawMessage, e FieldError) {
	if s.raw == nil {
		s.raw = map[string]json.RawMessage{}
	}
	s.raw[one.Name] = raw
	e.Path = one.Name
	s.Refused = append(s.Refused, e)
}

// UnmarshalJSON reads each setting separately. A setting that is missing or unusable gets its
// default, and an unusable one is refused by name: a wrong setting prevents no program from reading
// the shard.
func (s *ShardSettings) UnmarshalJSON(data []byte) error {
	var stored map[string]json.RawMessage
	if err := json.Unmarshal(data, &stored); err != nil {
		return err
	}
	usual := DefaultShardSettings()
	all := usual
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		raw := stored[name]
		one, known := settingNamed(name)
		if !known { // a newer program's, which is kept
			if all.raw == nil {
				all.raw = map[string]json.RawMessage{}
			}
			all.raw[name] = raw
			continue
		}
		next := all
		if bytes.Equal(raw, []byte("null")) {
			continue
		}
		if one.read(&next, raw) && one.ok(next) {
			one.copy(&all, next)
			continue
		}
		all.refuse(one, raw, FieldError{Value: shownRaw(raw), Allowed: one.Allowed, Rule: one.Rule})
	}
	all.refusePairs(usual)
	*s = all
	return nil
}

// shownRaw returns a stored value as a message shows it.
func shownRaw(raw json.RawMessage) string {
	var d Duration
	text := string(raw)
	if json.Unmarshal(raw, &d) == nil {
		text = d.String()
	}
	if r := []rune(text); len(r) > 60 {
		text = string(r[:57]) + "..."
	}
	return text
}

// MarshalJSON keeps what was refused as it was stored, until it is set again, and what a newer
// program has set.
func (s ShardSettings) MarshalJSON() ([]byte, error) {
	type plain ShardSettings
	value, err := json.Marshal(plain(s))
	if err != nil || len(s.raw) == 0 {
		return value, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(value, &fields); err != nil {
		return nil, err
	}
	maps.Copy(fields, s.raw)
	return json.Marshal(fields)
}
