package ec2

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/amazon"
)

// Codes of EC2's errors that the provider acts on.
const (
	codeMismatch    = "IdempotentParameterMismatch"
	codeNoAddress   = "InsufficientFreeAddressesInSubnet"
	codeNotFound    = "InvalidInstanceID.NotFound"
	codeWrongState  = "IncorrectInstanceState"
	codeUnsupported = "Unsupported"
	codeNoOperation = "UnsupportedOperation"
	codeAuthFailure = "AuthFailure"
)

var (
	full = []string{
		"InsufficientInstanceCapacity", "InsufficientCapacity", "InsufficientHostCapacity", "InsufficientAddressCapacity",
		"InsufficientReservedInstanceCapacity", "InsufficientVolumeCapacity", "SpotMaxPriceTooLow", codeNoAddress,
	}
	quotas = []string{"MaxSpotInstanceCountExceeded", "ResourceLimitExceeded", "InstanceCreditSpecification.LimitExceeded"}
	// wrong are codes of a wrong request that do not begin with Invalid.
	wrong = []string{
		"MissingParameter", "UnknownParameter", codeUnsupported, "VPCIdNotSpecified", "OperationNotPermitted",
		"NotExportable", "EncryptedVolumesNotSupported", "UnsupportedInstanceAttribute",
	}
)

// fields are the settings that codes are about, by the beginning of the code; and by what the text
// of the code for everything else says.
var (
	fieldsByCode = []struct{ prefix, field string }{
		{"InvalidAMI", "settings.image"},
		{"InvalidLaunchTemplate", "settings.launch_template"},
		{"InvalidKeyPair", "settings.key_name"},
		{"InvalidGroup", "settings.security_groups"},
		{"InvalidSecurityGroup", "settings.security_groups"},
		{"InvalidBlockDevice", "settings.root_disk"},
		{"InvalidSubnet", "zones of the provider's configuration"},
		{"InvalidUserData", "settings.user_data"},
	}
	fieldsByText = []struct{ says, field string }{
		{"iamInstanceProfile", "settings.instance_profile"},
		{"IAM Instance Profile", "settings.instance_profile"},
		{"InstanceType", "instance_type"},
		{"Not authorized for images", "settings.image"},
	}
)

// fieldOf is the setting that an error is about, "" if that is not known.
func fieldOf(code, text string) string {
	for _, f := range fieldsByCode {
		if strings.HasPrefix(code, f.prefix) {
			return f.field
		}
	}
	for _, f := range fieldsByText {
		if strings.Contains(text, f.says) {
			return f.field
		}
	}
	return ""
}

// call sends one request through the gate and gives an error its kind.
func (p *Provider) call(ctx context.Context, scope string, request func(context.Context) error) error {
	if err := p.gate.Pass(ctx); err != nil {
		return err
	}
	err := request(ctx)
	if err == nil {
		p.gate.Answered()
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return p.meaning(err, scope)
}

// apiError is an error of EC2 with its kind. errors.As still finds its code.
type apiError struct {
	kind  *provider.Error
	cause error
}

func (t apiError) Error() string   { return t.kind.Error() }
func (t apiError) Unwrap() []error { return []error{t.kind, t.cause} }

// meaning gives an error of EC2's its kind (PROV-5). The scope is what the request was about.
func (p *Provider) meaning(err error, scope string) error {
	code := amazon.CodeOf(err)
	if code == "" {
		return err // no answer, or an unreadable one: temporary; or an error of the credentials' source
	}
	e := &provider.Error{Scope: scope, Message: amazon.TextOf(err)}
	switch {
	case amazon.Throttles(code):
		e.Kind, e.After = provider.Throttled, p.gate.Throttled()
	case code == codeAuthFailure && strings.Contains(e.Message, "Not authorized for images"):
		e.Kind = provider.Invalid // of the template, not of the account
	case amazon.Refuses(code):
		e.Kind, e.Scope = provider.Credentials, "region "+p.region
	case code == codeNotFound:
		e.Kind = provider.NotFound
	case slices.Contains(full, code):
		e.Kind = provider.Capacity
	case slices.Contains(quotas, code), strings.HasSuffix(code, "LimitExceeded"), strings.HasSuffix(code, "QuotaExceeded"):
		e.Kind, e.Scope = provider.Quota, "account in "+p.region
	case slices.Contains(wrong, code), strings.HasPrefix(code, "Invalid"):
		e.Kind = provider.Invalid
	default:
		return err
	}
	if field := fieldOf(code, e.Message); e.Kind == provider.Invalid && field != "" {
		e.Scope = field
	}
	return apiError{e, err}
}

// tries is how often a request that only reads is sent before its failure is believed.
const tries = 3

// read sends a request that changes nothing. It waits out throttles, and repeats what fails
// otherwise a few times.
func (p *Provider) read(ctx context.Context, scope string, request func(context.Context) error) error {
	for failed := 0; ; {
		err := p.call(ctx, scope, request)
		if err == nil || ctx.Err() != nil {
			return err
		}
		var pause time.Duration
		switch kind := provider.KindOf(err); {
		case kind == provider.Throttled:
			after, _ := provider.RetryAfter(err)
			if end, is := ctx.Deadline(); is && time.Until(end) <= after {
				return err
			}
			pause = after
		case kind == provider.Temporary && failed < tries-1:
			failed++
			pause = time.Duration(failed) * p.poll / 2
		default:
			return err
		}
		if err := amazon.Wait(ctx, pause); err != nil {
			return err
		}
	}
}
