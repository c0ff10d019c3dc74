package targetgroup

import (
	"context"
	"errors"
	"strings"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/amazon"
	"github.com/leasehold/leasehold/provider/balancer"
)

// call sends one request through the gate and gives an error its kind (PROV-5).
func (b *Balancer) call(ctx context.Context, scope string, request func(context.Context) error) error {
	if err := b.gate.Pass(ctx); err != nil {
		return err
	}
	err := request(ctx)
	if err == nil {
		b.gate.Answered()
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	code := amazon.CodeOf(err)
	kind := provider.Temporary
	switch {
	case code == "":
		// No answer, or an unreadable one; or an error of the credentials' source, which has its
		// kind.
		return err
	case amazon.Throttles(code):
		return errors.Join(provider.ThrottledFor(b.gate.Throttled()), err)
	case amazon.Refuses(code):
		kind, scope = provider.Credentials, "region "+b.region
	case code == "TooManyTargets", code == "TooManyRegistrationsForTargetId":
		kind = provider.Capacity
	case code == "TargetGroupNotFound", strings.HasPrefix(code, "Invalid"), strings.HasPrefix(code, "Validation"):
		kind = provider.Invalid
	}
	return balancer.Errorf(kind, scope, "%s", amazon.TextOf(err))
}
