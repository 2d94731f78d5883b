"""Found by each Python whose path this folder is on: its process dies where ``GNL_CRASH_AT`` says."""

from gnl_middleware.testing import install_crash_points

install_crash_points()
