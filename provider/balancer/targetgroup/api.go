package targetgroup

import (
	"context"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
)

// api are the operations of the SDK's client in use. As in provider/ec2, no field that becomes an
// interface holds the client itself, so that the linker drops its other methods.
type api struct {
	DescribeTargetGroups operation[elb.DescribeTargetGroupsInput, elb.DescribeTargetGroupsOutput]
	DescribeTargetHealth operation[elb.DescribeTargetHealthInput, elb.DescribeTargetHealthOutput]
	RegisterTargets      operation[elb.RegisterTargetsInput, elb.RegisterTargetsOutput]
	DeregisterTargets    operation[elb.DeregisterTargetsInput, elb.DeregisterTargetsOutput]
}

type operation[In, Out any] = func(context.Context, *In, ...func(*elb.Options)) (*Out, error)

func apiOf(c *elb.Client) api {
	return api{
		DescribeTargetGroups: c.DescribeTargetGroups, DescribeTargetHealth: c.DescribeTargetHealth,
		RegisterTargets: c.RegisterTargets, DeregisterTargets: c.DeregisterTargets,
	}
}
