// SPDX-License-Identifier: GPL-2.0
/*
 * Module start and stop, the list of devices, netdev events.
 *
 * Devices come with `rdma link add` and go with `rdma link delete`, their
 * netdev or its namespace. All task context. Lock order: RTNL, then the list
 * mutex; under the list mutex nothing waits for a registration.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>

#include "softrnic.h"
#include "transport.h"

MODULE_DESCRIPTION("RDMA device on any network interface");
MODULE_LICENSE("GPL");
MODULE_VERSION(SRN_VERSION);
MODULE_ALIAS_RDMA_LINK("roce");

struct workqueue_struct *srn_wq;

static LIST_HEAD(srn_devs);
static DEFINE_MUTEX(srn_devs_lock);	/* srn_devs and setting srn_dev.dead */

void srn_dev_gone(struct srn_dev *dev)
{
	WRITE_ONCE(dev->dead, true);
}

/*
 * RTNL makes sure that the notifier either comes later and finds the device
 * or has been here for this netdev already, which then is in @net no more.
 */
static int srn_dev_list(struct srn_dev *dev, const struct net *net)
{
	struct srn_dev *other;
	int ret = 0;

	ASSERT_RTNL();
	if (dev->ndev->reg_state != NETREG_REGISTERED ||
	    dev_net(dev->ndev) != net || dev->net != net)
		return -ENODEV;

	mutex_lock(&srn_devs_lock);
	list_for_each_entry(other, &srn_devs, list) {
		if (other->ndev == dev->ndev && other->ops == dev->ops) {
			ret = -EEXIST;
			goto out;
		}
	}
	list_add_tail(&dev->list, &srn_devs);
out:
	mutex_unlock(&srn_devs_lock);
	return ret;
}

void srn_dev_unlist(struct srn_dev *dev)
{
	mutex_lock(&srn_devs_lock);
	list_del_init(&dev->list);
	mutex_unlock(&srn_devs_lock);
}

/*
 * The reference keeps the device registered across the call, whose work is
 * harmless when the device is being unregistered already.
 */
static void srn_dev_unregister_queued(struct srn_dev *dev)
{
	if (!ib_device_try_get(&dev->ibdev))
		return;
	ib_unregister_device_queued(&dev->ibdev);
	ib_device_put(&dev->ibdev);
}

/*
 * The netdev may have gone while the device was being registered: the notifier
 * could do no more than mark it.
 */
static bool srn_dev_went_away(struct srn_dev *dev)
{
	bool dead;

	mutex_lock(&srn_devs_lock);
	dead = dev->dead;
	if (dead)
		srn_dev_unregister_queued(dev);
	mutex_unlock(&srn_devs_lock);
	return dead;
}

/* The namespace of @ndev, held: it must not end while sockets are opened in it. */
static struct net *srn_newlink_net(const struct srn_transport_ops *ops,
				   struct net_device *ndev)
{
	struct net *net;
	int ret;

	ASSERT_RTNL();
	if (ndev->reg_state != NETREG_REGISTERED)
		return ERR_PTR(-ENODEV);
	ret = ops->netdev_ok ? ops->netdev_ok(ndev) : 0;
	if (ret)
		return ERR_PTR(ret);
	net = maybe_get_net(dev_net(ndev));
	return net ? net : ERR_PTR(-ENODEV);
}

static int srn_newlink(const struct srn_transport_ops *ops, const char *name,
		       struct net_device *ndev)
{
	struct srn_dev *dev;
	struct net *net;
	int ret;

	rtnl_lock();
	net = srn_newlink_net(ops, ndev);
	rtnl_unlock();
	if (IS_ERR(net))
		return PTR_ERR(net);

	dev = srn_dev_alloc(ndev, ops);
	if (IS_ERR(dev)) {
		ret = PTR_ERR(dev);
		goto err_net;
	}

	rtnl_lock();
	ret = srn_dev_list(dev, net);
	rtnl_unlock();
	if (ret)
		goto err_dealloc;

	/* Once it is registered anybody may delete it under us. */
	get_device(&dev->ibdev.dev);
	ret = srn_dev_register(dev, name);
	if (ret)
		goto err_put;
	if (srn_dev_went_away(dev))
		ret = -ENODEV;
	else
		srn_port_event(dev);
	put_device(&dev->ibdev.dev);
	put_net(net);
	return ret;

err_put:
	put_device(&dev->ibdev.dev);
err_dealloc:
	ib_dealloc_device(&dev->ibdev);
err_net:
	put_net(net);
	return ret;
}

static int srn_newlink_roce(const char *name, struct net_device *ndev)
{
	return srn_newlink(&roce_transport, name, ndev);
}

static struct rdma_link_ops srn_link_roce = {
	.type = "roce",
	.newlink = srn_newlink_roce,
};

static void srn_dev_netdev_event(struct srn_dev *dev, unsigned long event)
{
	switch (event) {
	case NETDEV_UNREGISTER:
		/* Comes again every second while somebody holds the netdev. */
		if (dev->dead)
			break;
		srn_dev_gone(dev);
		srn_dev_unregister_queued(dev);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		srn_port_event(dev);
		break;
	case NETDEV_CHANGEMTU:
		if (ib_device_try_get(&dev->ibdev)) {
			dev->ops->mtu_changed(dev);
			ib_device_put(&dev->ibdev);
		}
		break;
	}
}

static int srn_netdev_event(struct notifier_block *nb, unsigned long event,
			    void *ptr)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(ptr);
	struct srn_dev *dev;

	mutex_lock(&srn_devs_lock);
	list_for_each_entry(dev, &srn_devs, list) {
		if (dev->ndev == ndev)
			srn_dev_netdev_event(dev, event);
	}
	mutex_unlock(&srn_devs_lock);
	return NOTIFY_DONE;
}

static struct notifier_block srn_netdev_nb = {
	.notifier_call = srn_netdev_event,
};

static int __init srn_init(void)
{
	int ret;

	srn_wq = alloc_workqueue("softrnic", WQ_PERCPU | WQ_MEM_RECLAIM |
				 WQ_HIGHPRI, 0);
	if (!srn_wq)
		return -ENOMEM;

	ret = srn_qpn_init();
	if (ret)
		goto err_wq;

	ret = roce_init();
	if (ret)
		goto err_qpn;

	ret = register_netdevice_notifier(&srn_netdev_nb);
	if (ret)
		goto err_roce;

	rdma_link_register(&srn_link_roce);
	return 0;

err_roce:
	roce_exit();
err_qpn:
	srn_qpn_exit();
err_wq:
	destroy_workqueue(srn_wq);
	rcu_barrier();
	return ret;
}

/*
 * Each device holds the module, so none is left; one whose dealloc_driver has
 * just dropped the module is waited for by ib_unregister_driver().
 */
static void __exit srn_exit(void)
{
	rdma_link_unregister(&srn_link_roce);
	ib_unregister_driver(SRN_DRIVER_ID);
	unregister_netdevice_notifier(&srn_netdev_nb);
	roce_exit();
	srn_qpn_exit();
	destroy_workqueue(srn_wq);
	rcu_barrier();
}

module_init(srn_init);
module_exit(srn_exit);
