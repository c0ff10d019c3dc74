package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/coordinator/api"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// requestOfAPI is the part of an API request that a command does not have.
type requestOfAPI struct {
	group   string          // the groups that the request is about
	based   *store.Revision // the revision that the edit is based on; nil: an order
	denied  bool            // etcd refused something to the user
	raced   bool            // another edit came first
	wrote   store.Revision  // revision of the last transaction
	ordered string          // ID of the order that was given
	once    string          // ID of an order that may be repeated; "": not repeatable
	before  bool            // the order was given before
}

// login opens the shard for users of etcd: over a connection to etcd, or, for nil, over this
// process's connection. Their requests do what the commands do, under their names.
func (inv *Invocation) login(c *program.Connection) api.Login {
	if c == nil {
		own := inv.connection(nil)
		c = &own
	}
	return func(ctx context.Context, user, password string) (api.Editor, func(), error) {
		st, closeStore, err := inv.env.OpenAs(ctx, *c, user, password)
		if errors.Is(err, etcdstore.ErrOpen) {
			return nil, nil, &api.Problem{
				Status: http.StatusForbidden, Detail: err.Error() + ": nothing can be edited by the API",
				Remedies: story.Run("leasehold auth init"),
			}
		}
		if err != nil {
			return nil, nil, err
		}
		return &userOfAPI{inv, *c, st, user, password}, func() { _ = closeStore() }, nil
	}
}

// userOfAPI is a user of etcd who edits by the API.
type userOfAPI struct {
	process        *Invocation
	etcd           program.Connection
	st             store.Store
	name, password string
}

// invocation is a command of this user, with its own output.
func (u *userOfAPI) invocation(command, group string, edit api.Edit, file []byte) (
	inv *Invocation, said *bytes.Buffer,
) {
	env, flags := u.process.env, *u.process.flags
	said = &bytes.Buffer{}
	env.Stdin, env.Stdout, env.Stderr = bytes.NewReader(file), &bytes.Buffer{}, said
	env.StdinTerminal, env.StdoutTerminal, env.StderrTerminal, env.Colour = false, false, false, false
	env.User = "by the API, " + u.process.env.User
	flags.Endpoints, flags.CACert, flags.Cert, flags.Key = u.etcd.Endpoints, u.etcd.CACert, u.etcd.Cert, u.etcd.Key
	flags.User, flags.Output = u.name+":"+u.password, "json"
	request := &requestOfAPI{group: group, based: edit.If}
	if edit.Once != "" {
		request.once = store.OnceID(u.name, edit.Once)
	}
	return &Invocation{env: env, flags: &flags, st: u.st, command: command, api: request}, said
}

// give gives an order, unless it was given before.
func (inv *Invocation) give(ctx context.Context, said *bytes.Buffer, order func() error) (api.Result, error) {
	given, err := inv.givenBefore(ctx)
	if err == nil && !given {
		err = order()
	}
	return inv.answered(said, err)
}

// givenBefore reports whether the order was given before: it is pending, or a note says how it
// ended.
func (inv *Invocation) givenBefore(ctx context.Context) (bool, error) {
	if inv.api == nil || inv.api.once == "" {
		return false, nil
	}
	key := inv.keys().Request(inv.api.once)
	for _, k := range []string{key, inv.keys().Gone(key)} { // one transaction replaces the former by the latter
		kv, err := inv.find(ctx, k)
		if err != nil {
			return false, err
		}
		if kv.Modified != 0 {
			inv.api.ordered, inv.api.before = inv.api.once, true
			return true, nil
		}
	}
	return false, nil
}

// MayRead reports whether etcd lets the user read the shard.
func (u *userOfAPI) MayRead(ctx context.Context) bool {
	_, err := u.st.Get(ctx, store.KeysOf(u.process.flags.Shard).Shard())
	return err == nil || errors.Is(err, store.ErrNotFound)
}

// Apply does what group apply does.
func (u *userOfAPI) Apply(ctx context.Context, group string, file []byte, edit api.Edit) (api.Result, error) {
	s, said := u.invocation("apply the group", group, edit, file)
	c := GroupApply{Files: Files{Files: []string{"-"}}, Confirm: edit.Confirm}
	if !edit.DryRun {
		return s.answered(said, c.Run(ctx, s))
	}
	groups, err := s.readFiles(ctx, c.Files)
	if err == nil && len(groups) != 1 {
		err = onlyGroup(group)
	}
	var ch groupChange
	if err == nil {
		ch, err = s.planChange(ctx, groups[0])
	}
	if err == nil {
		err = s.judgeChanges(ctx, []groupChange{ch})
	}
	return s.foreseen(ctx, said, ch, err)
}

// Scale does what group scale does.
func (u *userOfAPI) Scale(ctx context.Context, group string, size int, edit api.Edit) (api.Result, error) {
	s, said := u.invocation("scale the group", group, edit, nil)
	c := GroupScale{Group: group, Size: &size, Confirm: edit.Confirm}
	if !edit.DryRun {
		return s.answered(said, c.Run(ctx, s))
	}
	ch, err := s.readExisting(ctx, group)
	if err == nil {
		err = c.change(s, &ch)
	}
	if err == nil {
		var field *store.FieldError
		if errors.As(ch.after.Validate(), &field) {
			err = failure(Usage, "", "%s", field)
		}
	}
	return s.foreseen(ctx, said, ch, err)
}

// Delete does what group delete does.
func (u *userOfAPI) Delete(ctx context.Context, group string, edit api.Edit) (api.Result, error) {
	if edit.DryRun {
		return api.Result{}, &api.Problem{
			Status: http.StatusBadRequest, Detail: "dryRun: only changes of a group's spec have a dry run",
		}
	}
	s, said := u.invocation("delete the group", group, edit, nil)
	c := GroupDelete{Group: group, Confirm: edit.Confirm}
	return s.answered(said, c.Run(ctx, s))
}

// Hold does what hold does.
func (u *userOfAPI) Hold(ctx context.Context, hold api.Hold, edit api.Edit) (api.Result, error) {
	s, said := u.invocation("hold the shard", "", edit, nil)
	return s.answered(said, (&Hold{Why: hold.Why}).Run(ctx, s))
}

// Release does what release does.
func (u *userOfAPI) Release(ctx context.Context, edit api.Edit) (api.Result, error) {
	s, said := u.invocation("release the shard", "", edit, nil)
	return s.answered(said, (&Release{DryRun: edit.DryRun, Confirm: edit.Confirm}).Run(ctx, s))
}

// Freeze does what freeze does.
func (u *userOfAPI) Freeze(ctx context.Context, freeze *api.Freeze, edit api.Edit) (api.Result, error) {
	s, said := u.invocation("freeze the shard", "", edit, nil)
	c := Freeze{End: freeze == nil}
	if freeze != nil {
		c.Why, c.From, c.Until = freeze.Why, flagTime(freeze.From), flagTime(freeze.Until)
	}
	return s.answered(said, c.Run(ctx, s))
}

// Evacuate does what evacuate does.
func (u *userOfAPI) Evacuate(ctx context.Context, zone string, end bool, edit api.Edit) (api.Result, error) {
	s, said := u.invocation("evacuate the zone", "", edit, nil)
	return s.answered(said, (&Evacuate{Zone: zone, End: end, Confirm: edit.Confirm}).Run(ctx, s))
}

// Protect does what instance protect does.
func (u *userOfAPI) Protect(ctx context.Context, id string, p *api.Protection, edit api.Edit) (api.Result, error) {
	s, said := u.invocation("protect the instance", "", edit, nil)
	c := InstanceProtect{Instance: id, Off: p == nil}
	if p != nil {
		c.FromHeal, c.Why, c.Until = p.FromHeal, p.Why, flagTime(p.Until)
	}
	return s.answered(said, c.Run(ctx, s))
}

// flagTime formats a time for a flag; "" for the zero time.
func flagTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(time.RFC3339)
}

// Drill gives the order of a drill command without following it: GET groups/GROUP/drills has the
// outcome.
func (u *userOfAPI) Drill(ctx context.Context, group string, wanted api.Drill, edit api.Edit) (api.Result, error) {
	s, said := u.invocation("drill the group", group, edit, nil)
	return s.give(ctx, said, func() error {
		one := drillOne{Group: group, Instance: wanted.Instance}
		var d drill
		var err error
		switch wanted.Kind {
		case api.DrillOfZone:
			d, err = (&DrillZone{Group: group, Zone: wanted.Zone}).drill(ctx, s)
		case string(store.DrillAgent):
			d, err = one.drill(ctx, s, store.RequestDrillAgent, drilledAgent)
		case string(store.DrillWorkload):
			d, err = one.drill(ctx, s, store.RequestDrillWorkload, drilledWorkload)
		default:
			d, err = one.drill(ctx, s, store.RequestDrill, drilledMachine)
		}
		if err != nil {
			return err
		}
		return s.orderDrill(ctx, d, edit.Confirm)
	})
}

// Create does what instance create does.
func (u *userOfAPI) Create(ctx context.Context, group string, edit api.Edit) (api.Result, error) {
	s, said := u.invocation("create an instance", group, edit, nil)
	return s.give(ctx, said, func() error { return (&InstanceCreate{Group: group}).Run(ctx, s) })
}

// Adopt does what instance adopt does for one machine.
func (u *userOfAPI) Adopt(ctx context.Context, id string, to api.Adoption, edit api.Edit) (api.Result, error) {
	s, said := u.invocation("adopt the machine", "", edit, nil)
	return s.give(ctx, said, func() error {
		if err := s.checkBaseOf("instance "+id, 0); err != nil { // it has no record
			return err
		}
		return (&InstanceAdopt{Instance: id, Group: to.Group, Slot: to.Slot}).Run(ctx, s)
	})
}

// GroupAction does what the command of this name does.
func (u *userOfAPI) GroupAction(ctx context.Context, group, action string, edit api.Edit) (api.Result, error) {
	s, said := u.invocation(action+" the group", group, edit, nil)
	return s.give(ctx, said, func() error {
		switch action {
		case "pause":
			return (&GroupPause{Group: group}).Run(ctx, s)
		case "resume":
			return (&GroupResume{Group: group}).Run(ctx, s)
		case "stop":
			return (&GroupStop{Group: group, Confirm: edit.Confirm}).Run(ctx, s)
		case "start":
			return (&GroupStart{Group: group}).Run(ctx, s)
		case "restart":
			return (&GroupRestart{Group: group}).Run(ctx, s)
		case "rollback":
			return (&GroupRollback{Group: group, Confirm: edit.Confirm}).Run(ctx, s)
		case "retry":
			return (&GroupRetry{Group: group}).Run(ctx, s)
		case "override-storm":
			return (&GroupOverrideStorm{Group: group}).Run(ctx, s)
		case "promote":
			return (&GroupPromote{Group: group}).Run(ctx, s)
		default:
			return failure(NotFound, "", "no action %q", action)
		}
	})
}

// InstanceAction gives the order that the command of this name gives.
func (u *userOfAPI) InstanceAction(ctx context.Context, id, action string, edit api.Edit) (api.Result, error) {
	s, said := u.invocation(action+" the instance", "", edit, nil)
	return s.give(ctx, said, func() error {
		switch action {
		case "replace":
			return (&InstanceReplace{Instance: id}).Run(ctx, s)
		case "restart":
			return (&InstanceRestart{Instance: id}).Run(ctx, s)
		case "drain":
			return (&InstanceDrain{Instance: id, Confirm: edit.Confirm}).Run(ctx, s)
		case "drained":
			return (&InstanceDrained{Instance: id}).Run(ctx, s)
		case "delete":
			return (&InstanceDelete{Instance: id, Confirm: edit.Confirm}).Run(ctx, s)
		default:
			return failure(NotFound, "", "no action %q", action)
		}
	})
}

// checkBase compares a group's revision as read with the one that the request is based on.
func (r *requestOfAPI) checkBase(c groupChange) error {
	switch {
	case r == nil:
		return nil
	case r.group != "" && c.name != r.group:
		return onlyGroup(r.group)
	case r.based == nil || *r.based == c.rev():
		return nil
	}
	p := &api.Problem{
		Status: http.StatusPreconditionFailed, Remedies: story.Advise("read the group again"),
		Detail: fmt.Sprintf("group %s is at revision %d, not %d; nothing was changed", c.name, c.rev(), *r.based),
	}
	switch {
	case *r.based == 0:
		p.Detail = fmt.Sprintf("group %s exists already, at revision %d; nothing was changed", c.name, c.rev())
	case c.isNew():
		p.Detail = fmt.Sprintf("group %s does not exist, and revision %d was expected; nothing was changed", c.name, *r.based)
	}
	return p
}

// checkBaseOf compares a record's revision as read with the one that the request is based on.
func (inv *Invocation) checkBaseOf(what string, read store.Revision) error {
	if inv.api == nil || inv.api.based == nil || *inv.api.based == read {
		return nil
	}
	return &api.Problem{
		Status: http.StatusPreconditionFailed, Remedies: story.Advise("read it again"),
		Detail: fmt.Sprintf("%s is at revision %d, not %d; nothing was changed", what, read, *inv.api.based),
	}
}

func onlyGroup(name string) error {
	return &api.Problem{
		Status: http.StatusUnprocessableEntity, Detail: fmt.Sprintf("the body must define group %s and no other", name),
	}
}

// unconfirmed asks the client for the name of what an action removes.
func unconfirmed(name, act string) error {
	return &api.Problem{
		Status: http.StatusConflict, Detail: act + ": this must be confirmed; nothing was changed",
		Remedies: story.Advise("the same request with confirm=" + name),
	}
}

// foreseen is the result of a dry run.
func (inv *Invocation) foreseen(ctx context.Context, said *bytes.Buffer, ch groupChange, err error) (
	api.Result, error,
) {
	var f foreseenChange
	if err == nil {
		f, err = inv.foreseeChange(ctx, ch)
	}
	r, err := inv.answered(said, err)
	if err == nil {
		r.Revision, r.Plan = ch.rev(), store.Encode(f)
	}
	return r, err
}

// answered converts the outcome of a command for a client of the API.
func (inv *Invocation) answered(said *bytes.Buffer, err error) (api.Result, error) {
	if err != nil {
		return api.Result{}, inv.problem(err)
	}
	r := api.Result{
		Revision: inv.api.wrote, Changed: inv.api.wrote != 0, Order: inv.api.ordered, Repeated: inv.api.before,
	}
	for _, line := range strings.Split(strings.TrimSpace(said.String()), "\n") {
		if line != "" {
			r.Said = append(r.Said, line)
		}
	}
	switch {
	case inv.api.based == nil, r.Order != "": // an order does not change the record
		r.Revision = 0
	case r.Revision == 0:
		r.Revision = *inv.api.based
	}
	return r, nil
}

// problem converts a command's error for a client of the API.
func (inv *Invocation) problem(err error) error {
	var known *api.Problem
	var f *Failure
	var problems yamlfile.Problems
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &problems):
		p := &api.Problem{Status: http.StatusUnprocessableEntity, Detail: "the group cannot be so"}
		for _, one := range problems {
			one.File = "body"
			p.Errors = append(p.Errors, one.Error())
		}
		return p
	case !errors.As(err, &f):
		return err
	}
	p := &api.Problem{Status: http.StatusUnprocessableEntity, Detail: f.What, Remedies: f.Remedies}
	switch {
	case inv.api.denied:
		p.Status = http.StatusForbidden
	case inv.api.raced:
		p.Status = http.StatusPreconditionFailed
	case f.Code == Conflict:
		p.Status = http.StatusConflict
	case f.Code == NotFound:
		p.Status = http.StatusNotFound
	case f.Code == Unreachable:
		p.Status = http.StatusServiceUnavailable
	}
	return p
}
