from .client import Client as Client
from .errors import BadRequest as BadRequest
from .errors import Conflict as Conflict
from .errors import TokenRefused as TokenRefused
from .errors import LimitReached as LimitReached
from .errors import NothingThere as NothingThere
from .errors import ServiceError as ServiceError
from .errors import ServiceUnavailable as ServiceUnavailable

__all__: list[str]
