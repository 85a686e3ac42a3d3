#ifndef WEFT_TRAIN_HPP
#define WEFT_TRAIN_HPP
// Training.

#include <weft/train/checkpoint_state.hpp>
#include <weft/train/clip.hpp>
#include <weft/train/collections.hpp>
#include <weft/train/coordinator.hpp>
#include <weft/train/dataset.hpp>
#include <weft/train/device_setter.hpp>
#include <weft/train/embedding.hpp>
#include <weft/train/hooks.hpp>
#include <weft/train/hyper_parameter.hpp>
#include <weft/train/initializers.hpp>
#include <weft/train/losses.hpp>
#include <weft/train/metrics.hpp>
#include <weft/train/monitored_session.hpp>
#include <weft/train/moving_averages.hpp>
#include <weft/train/optimizer.hpp>
#include <weft/train/optimizers.hpp>
#include <weft/train/partitioned_variable.hpp>
#include <weft/train/partitioner.hpp>
#include <weft/train/queue_runner.hpp>
#include <weft/train/regularizers.hpp>
#include <weft/train/replicate.hpp>
#include <weft/train/saver.hpp>
#include <weft/train/schedules.hpp>
#include <weft/train/session_hook.hpp>
#include <weft/train/sync_replica.hpp>
#include <weft/train/sync_replicas.hpp>
#include <weft/train/variable_scope.hpp>

#endif
