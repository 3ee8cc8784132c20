"""A fit, before torch brings its own OpenMP."""

import sklearn.linear_model
import threadpoolctl
import torch

print(sklearn.linear_model.LinearRegression().fit([[0], [1], [2]], [0, 1, 2]).coef_.round(6), torch.ones(2).tolist())
print(sorted({info["user_api"] for info in threadpoolctl.threadpool_info()}))
