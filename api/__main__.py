"""`python -m api`: the API with the settings of the environment."""

from api.server import serve
from schemas.settings import load_settings

if __name__ == "__main__":
    serve(load_settings())
